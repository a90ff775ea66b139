"""Step records as columns of numbers: what metrics and bootstraps compute with.

Stands between StepRecord and the metrics. One row per scored record (errors are left out), read once; every metric is
then arithmetic on arrays.
"""

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shop_env.click_types import CLICK_TYPES, click_type_of
from shop_env.metrics.presets import MetricChoices, TextMatch
from shop_env.metrics.records import StepRecord
from shop_env.reward.similarity import rouge_l

__all__ = ["ACTION_TYPES", "FINE_TYPES", "INVALID", "StepTable"]

ACTION_TYPES = ("click", "type_and_submit", "terminate")
INVALID = len(ACTION_TYPES)  # the code of a reply without a readable action
FINE_TYPES = (*CLICK_TYPES, "type_and_submit", "terminate")

_TYPE_CODES = {name: code for code, name in enumerate(ACTION_TYPES)}
_FINE_CODES = {name: code for code, name in enumerate(FINE_TYPES)}
_INVALID_FINE = len(FINE_TYPES)

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class StepTable:
    """The scored steps of a run, one entry per step in every column.

    Attributes:
        weights: What a step counts: 1, or 1/steps of its session where sessions are to count alike.
        logged_type, predicted_type: Codes of ACTION_TYPES; INVALID where the reply could not be read.
        logged_fine, predicted_fine: Codes of FINE_TYPES, clicks by their kind.
        fine_known: Whether the log tells the kind: not where a click has neither a kind nor a name.
        scorable: Whether the log knows every field of its action.
        exact: Whether every field is equal, typed text as `choices.text` says; NaN where the step is not scorable.
        exact_similar: The same with typed text of ROUGE-L ≥ τ counted as equal.
        reward, logged_probability, logged_rank, terminate_probability: NaN where a record has none.
        last: Whether the step is the last of its session.
    """

    def __init__(self, records: Sequence[StepRecord], choices: MetricChoices) -> None:
        self.choices = choices
        self.records = [record for record in records if record.error is None]
        self.errors = len(records) - len(self.records)
        self.weights = _weights(self.records, choices)
        self.logged_type = _codes([_TYPE_CODES[record.logged["type"]] for record in self.records])
        self.predicted_type = _codes(
            [_TYPE_CODES[record.predicted["type"]] if record.predicted else INVALID for record in self.records]
        )
        self.logged_fine = _codes([_FINE_CODES[_logged_fine(record)] for record in self.records])
        self.fine_known = _flags([_is_fine_known(record) for record in self.records])
        self.predicted_fine = _codes([_predicted_fine(record) for record in self.records])
        self.scorable = _flags([record.is_scorable for record in self.records])
        self.exact = self._exact(choices.text)
        self.exact_similar = self._exact("similar")
        self.reward = _numbers([record.reward for record in self.records])
        self.logged_probability = _numbers([record.logged_probability for record in self.records])
        self.logged_rank = _numbers([record.logged_rank for record in self.records])
        self.terminate_probability = _numbers([record.terminate_probability for record in self.records])
        self.last = _flags([record.step_index == record.step_count - 1 for record in self.records])

    def __len__(self) -> int:
        return len(self.records)

    def _exact(self, text: TextMatch) -> Floats:
        hits = _flags([_is_exact(record, text, self.choices.threshold) for record in self.records])
        return np.where(self.scorable, hits, np.nan)

    def clusters(self, by: str) -> tuple[Codes, int]:
        """For each step the number of its session or user, counted from 0, and how many there are."""
        names = [record.user_id if by == "user" else record.session_id for record in self.records]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return _codes([numbers[name] for name in names]), len(numbers)


def _weights(records: list[StepRecord], choices: MetricChoices) -> Floats:
    if choices.mean == "steps":
        return np.ones(len(records))
    steps: dict[str, int] = {}
    for record in records:
        steps[record.session_id] = steps.get(record.session_id, 0) + 1
    return np.array([1 / steps[record.session_id] for record in records], dtype=np.float64)


def _logged_fine(record: StepRecord) -> str:
    kind = record.logged["type"]
    if kind != "click":
        return kind
    click_type = record.logged_click_type
    return click_type if click_type in _FINE_CODES else click_type_of(record.logged["name"])


def _is_fine_known(record: StepRecord) -> bool:
    return record.logged["type"] != "click" or bool(record.logged_click_type or record.logged["name"])


def _predicted_fine(record: StepRecord) -> int:
    predicted = record.predicted
    if predicted is None:
        return _INVALID_FINE
    if predicted == record.logged and record.is_scorable:
        return _FINE_CODES[_logged_fine(record)]
    kind = predicted["type"]
    return _FINE_CODES[click_type_of(predicted["name"]) if kind == "click" else kind]


def _is_exact(record: StepRecord, text: TextMatch, threshold: float) -> bool:
    predicted, logged = record.predicted, record.logged
    if predicted is None:
        return False
    if predicted == logged:
        return True
    if text == "exact" or predicted["type"] != "type_and_submit" or logged["type"] != "type_and_submit":
        return False
    if predicted["name"] != logged["name"]:
        return False
    if text == "normalised":
        return _normalised(predicted["text"]) == _normalised(logged["text"])
    return rouge_l(predicted["text"], logged["text"]) >= threshold


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _codes(values: list[int]) -> Codes:
    return np.array(values, dtype=np.int64)


def _flags(values: list[bool]) -> Floats:
    return np.array(values, dtype=np.float64)


def _numbers(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
