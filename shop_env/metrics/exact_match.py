"""Exact action accuracy: every field of the predicted action equals the logged one.

| name | formula | range | source |
|---|---|---|---|
| `exact_accuracy` | share of steps with every field equal, of those with all fields logged | 0–1 | Shop-R1, section 4.1 |
| `exact_accuracy_similar_text` | the same, typed texts of ROUGE-L ≥ 0.75 counted as equal | 0–1 | Shop-R1, section 4.1 |
| `exact_accuracy_<type>` | the same of that logged type | 0–1 | Shop-R1, table 3 |

A step is not counted if the log lacks its action's name or text (`StepRecord.is_scorable`), because no reply can match.
"""  # noqa: E501 - a table row is a line

from functools import partial

import numpy as np

from shop_env.metrics.clustered_errors import Floats
from shop_env.metrics.metric import Metric, of_type, share
from shop_env.metrics.step_table import ACTION_TYPES, StepTable
from shop_env.reward.matching import TextMatch, exact_match


def exact_match_metrics() -> dict[str, Metric]:
    """Returns the metrics at the head of this module by name."""
    return {
        "exact_accuracy": share(exact_steps),
        "exact_accuracy_similar_text": share(partial(exact_steps, text="similar")),
        **{f"exact_accuracy_{kind}": of_type(exact_steps, code) for code, kind in enumerate(ACTION_TYPES)},
    }


def exact_steps(table: StepTable, text: TextMatch | None = None) -> Floats:
    """Returns 1 for each step with an exact prediction, else 0, shape (steps,); NaN if the step is not scorable.

    Args:
        text: How typed text is compared; None means as in the table's choices.
    """
    how = text or table.choices.text
    hits = table.column(lambda r: r.predicted is not None and exact_match(r.predicted, r.logged, how))
    return np.where(table.scorable, hits, np.nan)
