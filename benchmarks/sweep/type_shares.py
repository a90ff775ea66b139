"""Metrics of the shares of each type of action, logged and predicted (Customer-R1, table 7).

| name | formula | range |
|---|---|---|
| `logged_share_<type>` | share of steps at which the type is logged | 0–1 |
| `predicted_share_<type>` | share of steps at which the type is predicted | 0–1 |
| `predicted_less_logged_<type>` | predicted share minus logged share | -1–1 |

The type `other` is a malformed reply. It is never logged, so `type_accuracy_other` has no step.
"""

from collections.abc import Mapping

import numpy as np

from shop_env.metrics.metric import Metric, equal, share
from shop_env.metrics.step_table import ACTION_TYPES, INVALID

KINDS = {**dict(enumerate(ACTION_TYPES)), INVALID: "other"}


def _of_type(code: int, kind: str) -> dict[str, Metric]:
    return {
        f"logged_share_{kind}": share(lambda table: equal(table.logged_type, code)),
        f"predicted_share_{kind}": share(lambda table: equal(table.predicted_type, code)),
        f"predicted_less_logged_{kind}": share(
            lambda table: equal(table.predicted_type, code) - equal(table.logged_type, code), (-1.0, 1.0)
        ),
    }


TYPE_SHARES: Mapping[str, Metric] = {
    name: metric for code, kind in KINDS.items() for name, metric in _of_type(code, kind).items()
} | {"type_accuracy_other": share(lambda table: np.full(len(table), np.nan))}
