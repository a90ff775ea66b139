"""The choices that the papers' metrics leave open, and a preset of them for each paper.

They change results by ten points and more, so every metric names its preset (step_metrics(…, preset=…)).

- `shop_r1`: mean over steps; type F1 is weighted by how often a type is logged. The paper says "F1". Its test set has
  27.2% terminations, so a policy that always terminates has a weighted F1 of 11.67% and a macro-F1 of 14.28%; table 4
  reports 11.7% for its run that does. A malformed reply is a miss of its type, not a separate class. Typed text must be
  equal; `exact_accuracy_similar_text` also accepts similar text (ROUGE-L ≥ 0.75; the reward's must exceed it).
- `customer_r1`: macro-F1 over the three types (table 7 gives its confusion: click .914, input .025, terminate 0, mean
  .313; reported .3117). A malformed reply is a miss.
- `opera`: exact name, field and text; macro-F1, and the weighted F1 too. The choices are those of `customer_r1`, which
  has the same task. The two papers report different metrics; both sets are always computed.
- `lu_2025` (arXiv 2503.20749, section 4.2, the paper behind ShopCART): exact type, target and text, as the mean over
  sessions of each session's share, so that long sessions do not count more. Its outcome metric is the F1 of purchase
  alone (`outcome_f1_purchase`).

In all four the first action of a session is not scored: the caller leaves it out, as `evaluate` does.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from replay_sessions.foundation.config_errors import what_is_wrong
from replay_sessions.foundation.errors import BadConfig, check_choice, did_you_mean
from replay_sessions.foundation.records import Config
from replay_sessions.schema import ACTION_TYPES
from shop_env.reward.matching import TextMatch

Mean = Literal["steps", "sessions"]
Average = Literal["macro", "weighted"]
Invalid = Literal["miss", "class"]
PresetName = Literal["shop_r1", "customer_r1", "opera", "lu_2025"]
MIX_TYPES = ACTION_TYPES[: ACTION_TYPES.index("scroll")]  # the types of all stores
SHOP_R1_MIX = "690:677:512"  # the paper's test set, by table 3: click, type_and_submit, terminate


class MetricChoices(Config):
    """The settings that affect the metrics.

    Attributes:
        mean: `steps` gives every step the same weight, `sessions` every session (a step weighs 1/steps of its session).
        f1: The average over types that is reported as `type_f1`; both averages also have names of their own.
        invalid: A malformed reply is a miss of the logged type; with `class` it is also another class in macro-F1.
        text: How typed text is compared (shop_env.reward.matching.exact_match).
        mix: Shares of the types of action, in the order of MIX_TYPES, such as "690:677:512": steps are weighted so that
            the logged types have these shares. "" means no such weights. Scrolls do not count in a mix.
        own: The user's metrics, as "module:function" or "file.py:function". The function takes a StepRecord and returns
            the value of the step, or None if it does not count. The metric is the mean over steps.
    """

    mean: Mean = "steps"
    f1: Average = "macro"
    invalid: Invalid = "miss"
    text: TextMatch = "exact"
    mix: str = ""
    own: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("metrics.mean", self.mean, Mean)
        check_choice("metrics.f1", self.f1, Average)
        check_choice("metrics.invalid", self.invalid, Invalid)
        check_choice("metrics.text", self.text, TextMatch)
        if self.mix:
            parse_mix(self.mix)

    @property
    def weighting(self) -> str:
        """A description of the weights of steps; "" if all steps have the same weight."""
        mean = "each session counts the same" if self.mean == "sessions" else ""
        mix = f"{', '.join(MIX_TYPES)} count {self.mix}" if self.mix else ""
        return " and ".join(filter(None, [mean, mix]))


def parse_mix(mix: str) -> list[float]:
    """Parses a mix into the share of each type of action, in the order of MIX_TYPES.

    >>> parse_mix("2:1:1")
    [0.5, 0.25, 0.25]
    """
    parts = [int(part) if part.isdecimal() else 0 for part in mix.split(":")]
    if len(parts) != len(MIX_TYPES) or min(parts) < 1:
        raise BadConfig(f"metrics.mix is {mix!r}; it must be {':'.join(MIX_TYPES)} in whole numbers above 0.")
    return [part / sum(parts) for part in parts]


METRIC_PRESETS: Mapping[str, MetricChoices] = {
    "shop_r1": MetricChoices(f1="weighted"),
    "customer_r1": MetricChoices(),
    "opera": MetricChoices(),
    "lu_2025": MetricChoices(mean="sessions"),
}


def metric_preset(preset: str | MetricChoices) -> MetricChoices:
    """Parses a preset: the name of a paper, changed choices, and the user's metrics, separated by commas.

    MetricChoices pass through. Without a name the choices are those of `shop_r1`.

    Raises:
        BadConfig: The name or a choice is unknown.

    >>> metric_preset("opera,my.py:length").own
    ('my.py:length',)
    >>> metric_preset("opera,text=similar,mix=690:677:512").text
    'similar'
    """
    if isinstance(preset, MetricChoices):
        return preset
    parts = [part.strip() for part in preset.split(",")]
    changed = dict(part.split("=", 1) for part in parts if "=" in part)
    own = [part for part in parts if ":" in part and "=" not in part]
    name, *other_names = [part for part in parts if ":" not in part and "=" not in part] or ["shop_r1"]
    if other_names or name not in METRIC_PRESETS:
        hint = did_you_mean(name, METRIC_PRESETS)
        raise BadConfig(f"Unknown metrics preset {preset!r}. {hint} Or give FILE.py:FUNCTION, behind a comma.")
    fields = msgspec.structs.asdict(METRIC_PRESETS[name]) | changed | {"own": own}
    try:
        return msgspec.convert(fields, MetricChoices, strict=False)
    except msgspec.ValidationError as error:
        raise BadConfig(f"metrics are {preset!r}: {what_is_wrong(error, MetricChoices)}") from error
