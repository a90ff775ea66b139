"""The choices that the papers' metrics leave open, and each paper's set of them.

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

from collections.abc import Mapping
from typing import Literal

import msgspec

from replay_sessions.foundation.errors import BadConfig, check_choice, did_you_mean
from replay_sessions.foundation.records import Config

Mean = Literal["steps", "sessions"]
Average = Literal["macro", "weighted"]
Invalid = Literal["miss", "own_class"]
TextMatch = Literal["exact", "normalised", "similar"]


class MetricChoices(Config):
    """The settings that affect the metrics.

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
