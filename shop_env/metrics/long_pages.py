"""Metrics of pages that are too long for an agent's model: how often it reads only a part, or cannot answer.

| name | formula | range | source |
|---|---|---|---|
| `page_cut_rate` | share of steps at which the agent read a window of the page | 0–1 | ours |
| `target_shown` | share of steps whose logged element the agent could read, or that have none | 0–1 | ours |
| `pages_lost_rate` | share of steps at which it read nothing of an earlier page | 0–1 | ours |
| `too_long_rate` | share of steps too long to read: no reply, a miss elsewhere | 0–1 | ours |

A step may count in all of the first three. `target_shown` is what exact accuracy cannot exceed by reading; agents
that read every page whole have no such figure. The others are left out if they are 0.
"""

from collections.abc import Callable

import numpy as np

from shop_env.metrics.clustered_errors import Floats
from shop_env.metrics.metric import Metric, share
from shop_env.metrics.step_record import TOO_LONG, StepRecord
from shop_env.metrics.step_table import StepTable


def long_page_metrics() -> dict[str, Metric]:
    """Returns the metrics at the head of this module by name."""
    return {
        "page_cut_rate": _share_of(lambda record: record.page_cut),
        "target_shown": share(lambda table: table.column(lambda record: record.target_shown)),
        "pages_lost_rate": _share_of(lambda record: record.pages_left_out > 0),
        "too_long_rate": _share_of(lambda record: record.problem == TOO_LONG),
    }


def _share_of(is_hit: Callable[[StepRecord], bool]) -> Metric:
    def hits(table: StepTable) -> Floats:
        column = table.column(is_hit)
        return column if column.any() else np.full(len(table), np.nan)

    return share(hits)
