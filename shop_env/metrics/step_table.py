"""What is known of each answered step, and all steps of a run as columns of numbers: what metrics are computed from.

    evaluate.py ─► record_step ─► StepRecord ─► StepTable ─► all_metrics.py, intervals.py

A record holds what was logged and what was answered, so figures can be counted anew without asking the agent again. A
StepTable has one row per scored record (errors are left out), read once; every metric is then arithmetic on arrays.

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
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from replay_sessions.foundation.errors import BadConfig, check_choice, did_you_mean
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Action, Click, Session, reply_action
from shop_env.metrics.statistics import Codes, Floats
from shop_env.replies import Extraction, MalformedReply, parse_reply
from shop_env.reward.score import RewardConfig, best_breakdown, score_reply
from shop_env.reward.similarity import CLICK_TYPES, click_type_of, rouge_l, unlogged_fields


class StepRecord(Config, omit_defaults=True, gc=False):
    """One step and its answer.

    Attributes:
        step_count: How many steps the session has; the step is its last when `step_index` is one less.
        logged: The logged action as a reply carries it; a field that the log does not know is "", and then nobody can
            say whether a reply matched it (`is_scorable`).
        logged_click_type: The log's kind of click, None where it has none.
        predicted: The action of the reply; None for a malformed reply or an error.
        predicted_rationale: The rationale of the reply.
        problem: What is wrong with a malformed reply (its code, shop_env.replies).
        error: Why the agent gave no reply at all (time-out, server down): counted, not scored.
        reward: What the reply earned, self-certainty aside; None where there is no reply.
        best_reward: What the logged action would have earned.
        logged_probability: The agent's probability of the logged action, if it gives one (action_likelihood.py).
        logged_rank: The logged action's rank by it among all that can be done on the page, 1 for the most likely.
        terminate_probability: The agent's probability of terminate.
    """

    session_id: str
    user_id: str
    step_index: int
    step_count: int
    logged: dict[str, str]
    logged_click_type: str | None = None
    logged_rationale: str | None = None
    reply: str | None = None
    predicted: dict[str, str] | None = None
    predicted_rationale: str | None = None
    problem: str | None = None
    error: str | None = None
    reward: float | None = None
    best_reward: float | None = None
    logged_probability: float | None = None
    logged_rank: int | None = None
    terminate_probability: float | None = None

    @property
    def key(self) -> tuple[str, int]:
        """The session's id and the step's number."""
        return self.session_id, self.step_index

    @property
    def logged_action(self) -> Action:
        logged: Action = msgspec.convert(self.logged, Action)
        is_click = isinstance(logged, Click)
        return msgspec.structs.replace(logged, click_type=self.logged_click_type) if is_click else logged

    @property
    def is_scorable(self) -> bool:
        """Whether the log knows every field of its action: else only the type can be right or wrong."""
        return not unlogged_fields(self.logged)


def record_step(
    session: Session,
    step_index: int,
    reply: str | None,
    reward: RewardConfig,
    *,
    extraction: Extraction = "strict",
    error: str | None = None,
) -> StepRecord:
    """Reads and scores a reply to a step; `reply` is None, and `error` says why, where the agent failed.

    Args:
        extraction: How the action is found in the reply (shop_env.replies).
    """
    step = session.steps[step_index]
    record = StepRecord(
        session_id=session.session_id,
        user_id=session.user_id,
        step_index=step_index,
        step_count=len(session.steps),
        logged=reply_action(step.action),
        logged_click_type=step.action.click_type if isinstance(step.action, Click) else None,
        logged_rationale=step.rationale,
        reply=reply,
        error=error,
    )
    return rescore(record, reward, extraction)


def rescore(record: StepRecord, reward: RewardConfig, extraction: Extraction = "strict") -> StepRecord:
    """The record with all that follows from its reply and its logged action."""
    logged = record.logged_action
    parsed = None if record.reply is None else parse_reply(record.reply, extraction)
    readable = None if isinstance(parsed, MalformedReply) else parsed
    return msgspec.structs.replace(
        record,
        predicted=reply_action(readable.action) if readable else None,
        predicted_rationale=readable.rationale if readable else None,
        problem=parsed.problem if isinstance(parsed, MalformedReply) else None,
        reward=score_reply(parsed, logged, reward).total if parsed else None,
        best_reward=best_breakdown(logged, reward).total,
    )


Mean = Literal["steps", "sessions"]
Average = Literal["macro", "weighted"]
Invalid = Literal["miss", "own_class"]
TextMatch = Literal["exact", "normalised", "similar"]


class MetricChoices(Config):
    """How figures are counted.

    Attributes:
        mean: Every step counts the same, or every session does (a step then counts 1/steps of its session).
        f1: Which average over types is reported as `type_f1`; both are there by their own names.
        invalid: A malformed reply is only a miss of the logged type, or also a class of its own in macro-F1.
        text: Typed text counts as right when equal, when equal after normalisation (Unicode NFKC, case, white space),
            or when its ROUGE-L reaches `threshold`.
        own: Metrics of one's own beside these, as "module:function" or "file.py:function": of a StepRecord, the value
            of the step, or None where it does not count. The metric is the mean over steps.
    """

    mean: Mean = "steps"
    f1: Average = "macro"
    invalid: Invalid = "miss"
    text: TextMatch = "exact"
    threshold: float = 0.75
    own: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("metrics.mean", self.mean, Mean)
        check_choice("metrics.f1", self.f1, Average)
        check_choice("metrics.invalid", self.invalid, Invalid)
        check_choice("metrics.text", self.text, TextMatch)
        if not 0 <= self.threshold <= 1:
            raise BadConfig(f"metrics.threshold is {self.threshold}; it must lie between 0 and 1.")


METRIC_PRESETS: Mapping[str, MetricChoices] = {
    "shop_r1": MetricChoices(f1="weighted"),
    "customer_r1": MetricChoices(),
    "opera": MetricChoices(),
}


def metric_preset(preset: str | MetricChoices) -> MetricChoices:
    """The choices of a paper by name, and metrics of one's own; choices of one's own pass through.

    >>> metric_preset("opera,my.py:length").own
    ('my.py:length',)
    """
    if isinstance(preset, MetricChoices):
        return preset
    own = [part for part in preset.split(",") if ":" in part]
    name, *more = [part for part in preset.split(",") if ":" not in part] or ["shop_r1"]
    if more or name not in METRIC_PRESETS:
        hint = did_you_mean(name, METRIC_PRESETS)
        raise BadConfig(f"Unknown metrics preset {preset!r}. {hint} Or give FILE.py:FUNCTION, behind a comma.")
    return msgspec.structs.replace(METRIC_PRESETS[name], own=tuple(own))


ACTION_TYPES = ("click", "type_and_submit", "terminate")
INVALID = len(ACTION_TYPES)  # the code of a reply without a readable action
FINE_TYPES = (*CLICK_TYPES, "type_and_submit", "terminate")

_TYPE_CODES = {name: code for code, name in enumerate(ACTION_TYPES)}
_FINE_CODES = {name: code for code, name in enumerate(FINE_TYPES)}
_INVALID_FINE = len(FINE_TYPES)


class StepTable:
    """The scored steps of a run, one entry per step in every column.

    Attributes:
        weights: What a step counts: 1, or 1/steps of its session where sessions are to count alike.
        logged_type, predicted_type: Codes of ACTION_TYPES; INVALID where the reply could not be read.
        logged_fine, predicted_fine: Codes of FINE_TYPES, clicks by their kind.
        rule_agrees: For clicks with a kind and a name in the log, whether the name's kind by similarity.py is the
            log's; NaN elsewhere.
        fine_known: Whether the log has the kind: not where a click has neither a kind nor a name.
        scorable: Whether the log knows every field of its action.
        exact: Whether every field is equal, typed text as `choices.text` says; NaN where the step is not scorable.
        exact_similar: The same with typed text of ROUGE-L ≥ τ counted as equal.
        reward, logged_probability, logged_rank, terminate_probability: NaN where a record has none.
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
        self.rule_agrees = self.numbers(_rule_agrees)
        unnamed = {"type": "click", "name": ""}
        self.fine_known = self.numbers(lambda r: r.logged_click_type in _FINE_CODES or r.logged != unnamed)
        self.scorable = self.numbers(lambda record: record.is_scorable)
        self.exact = self._exact(self.choices.text)
        self.exact_similar = self._exact("similar")
        self.reward = self.numbers(lambda record: record.reward)
        self.logged_probability = self.numbers(lambda record: record.logged_probability)
        self.logged_rank = self.numbers(lambda record: record.logged_rank)
        self.terminate_probability = self.numbers(lambda record: record.terminate_probability)
        self.last = self.numbers(lambda record: record.step_index == record.step_count - 1)
        steps = Counter(record.session_id for record in self.records)
        self.weights = self.numbers(lambda r: 1.0 if self.choices.mean == "steps" else 1 / steps[r.session_id])

    def __len__(self) -> int:
        return len(self.records)

    def numbers(self, value: Callable[[StepRecord], float | None]) -> Floats:
        """A column of its own; NaN where there is None."""
        return np.array([value(record) for record in self.records], dtype=np.float64)

    def _codes(self, code: Callable[[StepRecord], int]) -> Codes:
        return np.array([code(record) for record in self.records], dtype=np.int64)

    def _exact(self, text: TextMatch) -> Floats:
        hits = self.numbers(lambda record: _is_exact(record, text, self.choices.threshold))
        return np.where(self.scorable, hits, np.nan)

    def clusters(self, by: str) -> tuple[Codes, int]:
        """For each step the number of its session or user, counted from 0, and how many there are."""
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


def _is_exact(record: StepRecord, text: TextMatch, threshold: float) -> bool:
    predicted, logged = record.predicted, record.logged
    if predicted is None or predicted == logged or text == "exact" or "text" not in predicted:
        return predicted == logged
    if predicted["type"] != logged["type"] or predicted["name"] != logged["name"]:
        return False
    if text == "normalised":
        return _normalised(predicted["text"]) == _normalised(logged["text"])
    return rouge_l(predicted["text"], logged["text"]) >= threshold


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
