"""Turns all steps of a run into columns of numbers, from which metrics are computed.

    step_record.py (StepRecord) ─► StepTable ─► all_metrics.py, intervals.py

A StepTable has one row for each scored record (errors are left out), so that metrics are arithmetic on arrays.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import ACTION_TYPES as ACTION_TYPES
from shop_env.metrics.clustered_errors import Codes, Floats
from shop_env.metrics.presets import MIX_TYPES, MetricChoices, metric_preset
from shop_env.metrics.step_record import StepRecord
from shop_env.reward.click_types import CLICK_TYPES, click_type_of

INVALID = len(ACTION_TYPES)  # the code of a malformed reply
FINE_TYPES = (*CLICK_TYPES, *(kind for kind in ACTION_TYPES if kind != "click"))  # clicks by their kind

_TYPE_CODES: dict[str, int] = {name: code for code, name in enumerate(ACTION_TYPES)}
_FINE_CODES = {name: code for code, name in enumerate(FINE_TYPES)}
_INVALID_FINE = len(FINE_TYPES)


def types_in(records: Sequence[StepRecord]) -> list[str]:
    """Returns the types of action for a table of these records: scroll only where it is logged or predicted."""
    named = {action["type"] for record in records for action in (record.logged, record.predicted) if action}
    return [kind for kind in ACTION_TYPES if kind in MIX_TYPES or kind in named]


class StepTable:
    """The scored steps of a run as columns, each of shape (steps,).

    Attributes:
        weights: The weight of the step: 1, or 1/steps of its session if sessions have equal weights.
        logged_type, predicted_type: Codes of ACTION_TYPES; INVALID for a malformed reply.
        logged_fine, predicted_fine: Codes of FINE_TYPES, clicks by their kind.
        rule_agrees: For clicks with a kind and a name in the log, whether click_types.py derives the same kind from the
            name; NaN for other steps.
        fine_known: Whether the kind is known: 0 for a click with neither a kind nor a name in the log.
        scorable: Whether the log has every field of its action.
        reward, logged_probability, logged_rank, terminate_probability: Fields of the records; NaN for None.
        last: Whether the step is the last of its session.
    """

    def __init__(self, records: Sequence[StepRecord], preset: str | MetricChoices) -> None:
        self.choices = metric_preset(preset)
        self.records = [record for record in records if record.error is None]
        self.errors = len(records) - len(self.records)
        self.logged_type = self._codes(lambda record: _TYPE_CODES[record.logged["type"]])
        self.predicted_type = self._codes(lambda r: _TYPE_CODES[r.predicted["type"]] if r.predicted else INVALID)
        self.logged_fine = self._codes(lambda record: _FINE_CODES[_logged_fine(record)])
        self.predicted_fine = self._codes(_predicted_fine)
        self.rule_agrees = self.column(_rule_agrees)
        unnamed = {"type": "click", "name": ""}
        self.fine_known = self.column(lambda r: r.logged_click_type in _FINE_CODES or r.logged != unnamed)
        self.scorable = self.column(lambda record: record.is_scorable)
        fields = ("reward", "logged_probability", "logged_rank", "terminate_probability")
        self.reward, self.logged_probability, self.logged_rank, self.terminate_probability = (
            self.column(attrgetter(name)) for name in fields
        )
        self.last = self.column(lambda record: record.step_index == record.step_count - 1)
        steps = Counter(record.session_id for record in self.records)
        self.weights = self.column(lambda r: 1.0 if self.choices.mean == "steps" else 1 / steps[r.session_id])
        # With errors the type may only be unanswered: then this agent has no figures, and all others have theirs.
        if self.choices.mix and len(self) and not self.errors and not {*range(len(MIX_TYPES))} <= {*self.logged_type}:
            raise BadConfig(f"metrics.mix is {self.choices.mix!r}, but these steps lack one of the types of action.")

    def __len__(self) -> int:
        return len(self.records)

    def column(self, value: Callable[[StepRecord], float | None]) -> Floats:
        """Computes a column from the records; None becomes NaN."""
        return np.array([value(record) for record in self.records], dtype=np.float64)

    def _codes(self, code: Callable[[StepRecord], int]) -> Codes:
        return np.array([code(record) for record in self.records], dtype=np.int64)

    def clusters(self, by: str) -> tuple[Codes, int]:
        """Returns for each step the number of its session or user, from 0, and the number of sessions or users.

        Args:
            by: "session" or "user".
        """
        names = [getattr(record, f"{by}_id") for record in self.records]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return np.array([numbers[name] for name in names], dtype=np.int64), len(numbers)


def _logged_fine(record: StepRecord) -> str:
    kind = record.logged["type"]
    if kind != "click":
        return kind
    click_type = record.logged_click_type
    return click_type if click_type in _FINE_CODES else click_type_of(record.logged["name"])


def _rule_agrees(record: StepRecord) -> bool | None:
    name, click_type = record.logged.get("name"), record.logged_click_type
    return click_type_of(name) == click_type if name and click_type in _FINE_CODES else None


def _predicted_fine(record: StepRecord) -> int:
    predicted = record.predicted
    if predicted is None:
        return _INVALID_FINE
    if predicted == record.logged and record.is_scorable:
        return _FINE_CODES[_logged_fine(record)]
    kind = predicted["type"]
    return _FINE_CODES[click_type_of(predicted["name"]) if kind == "click" else kind]
