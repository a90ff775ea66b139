"""Step records as columns of numbers: what metrics and bootstraps compute with.

Stands between StepRecord and the metrics. One row per scored record (errors are left out), read once; every metric is
then arithmetic on arrays.

The choices that the papers' metrics leave open, and each paper's set of them.

They move results by ten points and more, so every figure names its set (step_metrics(…, preset=…)).

- `shop_r1`: mean over steps; type F1 is weighted by how often a type is logged. The paper says "F1", but a policy that
  always terminates has, with its test set's 27.2% of terminations, a weighted F1 of 11.6% and a macro-F1 of 14.3%;
  table 4 reports 11.7% for its run that does. A malformed reply misses its type and is no class of its own. Typed text
  must be equal; the figure with "similar" text (ROUGE-L ≥ 0.75) stands beside it as `exact_accuracy_similar_text`.
- `customer_r1`: macro-F1 over the three types (table 7 gives its confusion: click .914, input .025, terminate 0, mean
  .313; reported 31.2), a malformed reply is a miss.
- `opera`: exact name, field and text; macro-F1, the weighted one beside it. The same choices as `customer_r1`, which
  took the task over from there: the papers differ in the figures that they report, and all of them are always counted.

In all three the first action of a session is not scored: it is the caller who leaves it out (evaluate does).
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from replay_sessions.foundation.errors import BadConfig, did_you_mean
from shop_env.click_types import CLICK_TYPES, click_type_of
from shop_env.metrics.records import StepRecord
from shop_env.reward.similarity import rouge_l

Mean = Literal["steps", "sessions"]
Average = Literal["macro", "weighted"]
Invalid = Literal["miss", "own_class"]
TextMatch = Literal["exact", "normalised", "similar"]


class MetricChoices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How figures are counted.

    Attributes:
        mean: Every step counts the same, or every session does (a step then counts 1/steps of its session).
        f1: Which average over types is reported as `type_f1`; both are there by their own names.
        invalid: A malformed reply is only a miss of the logged type, or also a class of its own in macro-F1.
        text: Typed text counts as right when equal, when equal after normalisation (Unicode NFKC, case, white space),
            or when its ROUGE-L reaches `threshold`.
    """

    mean: Mean = "steps"
    f1: Average = "macro"
    invalid: Invalid = "miss"
    text: TextMatch = "exact"
    threshold: float = 0.75

    def __post_init__(self) -> None:
        for field, choices in (("mean", Mean), ("f1", Average), ("invalid", Invalid), ("text", TextMatch)):
            if (value := getattr(self, field)) not in get_args(choices):
                raise BadConfig(f"metrics.{field} is {value!r}; it must be one of {', '.join(get_args(choices))}.")
        if not 0 <= self.threshold <= 1:
            raise BadConfig(f"metrics.threshold is {self.threshold}; it must lie between 0 and 1.")


METRIC_PRESETS: Mapping[str, MetricChoices] = {
    "shop_r1": MetricChoices(f1="weighted"),
    "customer_r1": MetricChoices(),
    "opera": MetricChoices(),
}


def metric_preset(preset: str | MetricChoices) -> MetricChoices:
    """The choices of a paper by name; choices of one's own pass through."""
    if isinstance(preset, MetricChoices):
        return preset
    if preset not in METRIC_PRESETS:
        raise BadConfig(f"Unknown metrics preset {preset!r}. {did_you_mean(preset, METRIC_PRESETS)}")
    return METRIC_PRESETS[preset]


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
        rule_agrees: For clicks with a kind and a name in the log, whether the name's kind by click_types.py is the
            log's; NaN elsewhere.
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
        self.rule_agrees = _numbers([_rule_agrees(record) for record in self.records])
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


def _rule_agrees(record: StepRecord) -> bool | None:
    name, click_type = record.logged.get("name"), record.logged_click_type
    return click_type_of(name) == click_type if name and click_type in _FINE_CODES else None


def _is_fine_known(record: StepRecord) -> bool:
    return record.logged["type"] != "click" or record.logged_click_type in _FINE_CODES or record.logged["name"] != ""


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
