"""Metrics of the shares of each type of action, logged and predicted (Customer-R1, table 7 and figure 3).

| name | formula | range |
|---|---|---|
| `logged_share_<type>` | share of steps at which the type is logged | 0–1 |
| `predicted_share_<type>` | share of steps at which the type is predicted | 0–1 |
| `predicted_less_logged_<type>` | predicted share minus logged share | -1–1 |

The type `other` is a malformed reply. It is never logged, so `type_accuracy_other` has no step. The kinds of click and
the other types (Customer-R1, figure 3) have the first two shares too, with the kind `click_<kind>` for clicks, and

| name | formula | range |
|---|---|---|
| `exact_share_<kind>` | share of steps at which the kind is logged and the action is predicted exactly | 0–1 |
"""

from collections.abc import Mapping

import numpy as np

from shop_env.metrics.exact_match import exact_steps
from shop_env.metrics.metric import Metric, equal, share
from shop_env.metrics.step_table import ACTION_TYPES, FINE_TYPES, INVALID
from shop_env.reward.click_types import CLICK_TYPES

KINDS = {**dict(enumerate(ACTION_TYPES)), INVALID: "other"}


# Kinds of click and the other types of action, by code.
FINE_KINDS = {code: f"click_{kind}" if kind in CLICK_TYPES else kind for code, kind in enumerate(FINE_TYPES)}


def _of_type(code: int, kind: str) -> dict[str, Metric]:
    return {
        f"logged_share_{kind}": share(lambda table: equal(table.logged_type, code)),
        f"predicted_share_{kind}": share(lambda table: equal(table.predicted_type, code)),
        f"predicted_less_logged_{kind}": share(
            lambda table: equal(table.predicted_type, code) - equal(table.logged_type, code), (-1.0, 1.0)
        ),
    }


def _of_fine_kind(code: int, kind: str) -> dict[str, Metric]:
    return {
        f"logged_share_{kind}": share(lambda table: equal(table.logged_fine, code)),
        f"predicted_share_{kind}": share(lambda table: equal(table.predicted_fine, code)),
        f"exact_share_{kind}": share(lambda table: exact_steps(table) * equal(table.logged_fine, code)),
    }


TYPE_SHARES: Mapping[str, Metric] = (
    {name: metric for code, kind in FINE_KINDS.items() for name, metric in _of_fine_kind(code, kind).items()}
    | {name: metric for code, kind in KINDS.items() for name, metric in _of_type(code, kind).items()}
    | {"type_accuracy_other": share(lambda table: np.full(len(table), np.nan))}
)
