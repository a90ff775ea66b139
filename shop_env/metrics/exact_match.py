"""Exact action accuracy: every field of the predicted action equals the logged one.

| name | formula | range | source |
|---|---|---|---|
| `exact_accuracy` | share of steps with every field equal, of those with all fields logged | 0–1 | Shop-R1, section 4.1 |
| `exact_accuracy_similar_text` | the same, typed texts of ROUGE-L ≥ τ counted as equal | 0–1 | Shop-R1, section 4.1 |
| `exact_accuracy_<type>` | the same of that logged type | 0–1 | Shop-R1, table 3 |

A step is not counted if the log lacks its action's name or text (`StepRecord.is_scorable`), because no reply can match.
"""  # noqa: E501 - a table row is a line

import unicodedata
from functools import partial

import numpy as np

from shop_env.metrics.choices import TextMatch
from shop_env.metrics.clustered_errors import Floats
from shop_env.metrics.metric import Metric, of_type, share
from shop_env.metrics.step_record import StepRecord
from shop_env.metrics.step_table import ACTION_TYPES, StepTable
from shop_env.reward.similarity import ROUNDING, rouge_l


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
    comparison = text or table.choices.text
    hits = table.numbers(lambda record: is_exact(record, comparison, table.choices.threshold))
    return np.where(table.scorable, hits, np.nan)


def is_exact(record: StepRecord, text: TextMatch, threshold: float) -> bool:
    """Returns whether a prediction equals the logged action.

    Args:
        text: How typed text is compared (`MetricChoices.text`).
        threshold: The smallest ROUGE-L of `similar` text.
    """
    predicted, logged = record.predicted, record.logged
    if predicted is None or predicted == logged or text == "exact" or "text" not in predicted:
        return predicted == logged
    if predicted["type"] != logged["type"] or predicted["name"] != logged["name"]:
        return False
    if text == "normalised":
        return _normalised(predicted["text"]) == _normalised(logged["text"])
    return rouge_l(predicted["text"], logged["text"]) >= threshold - ROUNDING


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
