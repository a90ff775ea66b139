"""Computes the reward of a reply; the env, the trainer, the leaderboard and the adapters all call `score_reply`.

Shop-R1, table 1 and equation 4:

    total = format + type + presence + similarity  (the action reward v(a))  +  α · self-certainty of the rationale

ROUGE-L (similarity.py) compares texts; it earns points "only when that similarity exceeds a preset threshold" τ (the
paper). With `threshold_rule = "reaches"` a similarity equal to τ earns too. Both rules allow for rounding: precision 1
and recall 3/5 give 0.7499999999999999, which counts as 0.75.

A malformed reply earns 0 in total. Self-certainty comes from the policy's probabilities (train.policy), so it is an
argument; None means that it was not measured. An empty rationale has no token to measure and earns 0 (`EMPTY_RATIONALE`).
With `requires_rationale` a reply whose rationale is empty or blank earns 0 in total too, as a malformed one.

The papers' rewards by name (`REWARD_PRESETS`):

| preset | what | source |
|---|---|---|
| `shop_r1` | hierarchical, DARS 1000, format 0.5, self-certainty 0.005 | Shop-R1, table 1 |
| `no_format` | without the format reward | Shop-R1, table 4 |
| `no_rationale` | without the rationale reward (self-certainty) | Shop-R1, table 4 |
| `no_dars` | without the reward scale: ROUGE-L counts once | Shop-R1, table 4 |
| `binary_action` | 1 for an exact match in place of the hierarchical action reward; format and self-certainty stay | Shop-R1, table 4 |
| `binary_action_scaled` | the same with 1000 for an exact match of any type | Shop-R1, table 4 |
| `binary` | 1 for an exact match and nothing else: "RL (Binary)", "SFT + RL (Binary)" | Shop-R1, table 2 |
| `customer_r1` | exact match weighed by kind of action, a wrong click -1, format 1 | Customer-R1, section 4.3 |
| `customer_r1_rl_only` | the same with a wrong click 0, for RL without SFT | Customer-R1, section 4.3 |

Only GRPO can use `LOG_LIKELIHOOD`, because the policy in training measures it (train/grpo/likelihood.py). Instead of a
preset, "module:function" or "file.py:function" names a function of the Reply and the logged Action. It returns a number,
the complete reward of a readable reply (docs/your_reward.md).

Table 4's first row (no SFT) trains with `shop_r1`. Its row "binary" has a tick at "Reward Scale", but does not say what
is scaled in a reward without similarities of texts: hence two presets.
"""  # noqa: E501 - a table row is a line

import math
from collections.abc import Mapping
from typing import Literal, assert_never

import msgspec

from replay_sessions.foundation.errors import BadConfig, check_choice, did_you_mean
from replay_sessions.foundation.plugins import load_measure
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Action, Click, Scroll, Terminate, TypeAndSubmit
from shop_env.replies import Extraction, MalformedReply, Reply, needed_extraction, parse_reply
from shop_env.reward.click_types import click_type_of
from shop_env.reward.matching import exact_match, is_wrong_click
from shop_env.reward.similarity import ROUNDING, SIMILARITIES, SimilarityName

RewardKind = Literal["hierarchical", "binary", "customer_r1", "log_likelihood"]
ThresholdRule = Literal["exceeds", "reaches"]
_MARGINS: dict[ThresholdRule, float] = {"exceeds": ROUNDING, "reaches": -ROUNDING}
SelfCertainty = Literal["kl_uniform_policy", "kl_policy_uniform", "eq3"]


class RewardConfig(Config):
    """The numbers of a reward; the defaults are Shop-R1's.

    Attributes:
        kind: `hierarchical` is table 1 of Shop-R1; `binary` gives the action `exact_points` for an exact match, else 0;
            `customer_r1` gives an exact match points by the kind of action; `log_likelihood` is only the log-likelihood
            of the logged action behind the reply's rationale; "module:function" is the user's function.
        format: Points for a readable reply; a malformed reply always earns 0 in total.
        requires_rationale: If True, the format asks for a rationale: a reply whose rationale is empty or blank earns 0
            in total, as a malformed one.
        action_type: Points for the right type of action.
        click_name_present: Points for a click that names an element.
        typing_name_present: Points for typing that names an element.
        typing_text_present: Points for typing that has a text.
        typing_name_similarity: Factor on ROUGE-L of the name of the element typed into.
        dars: The difficulty-aware factor on ROUGE-L of a clicked name and of a typed text.
        threshold: τ, the similarity above which points are earned.
        threshold_rule: `exceeds` pays a similarity above τ, as in the paper; `reaches` also one equal to τ.
        similarity: `rouge_l` compares words of any script. `rouge_score` is the package, which has the same values on
            ASCII texts (slower), and knows no letters but a-z.
        self_certainty: Which of three definitions the trainer measures (the paper's text, equation 3 and figure 1
            disagree): KL(U ‖ p), KL(p ‖ U), or equation 3 as printed.
        self_certainty_weight: α, the weight of self-certainty.
        exact_points: Points of `binary` for an exact match.
        typing_points: Points of `customer_r1` for the same typing.
        click_points: Points of `customer_r1` for the same click.
        click_type_points: Customer-R1's points for clicks that differ from `click_points`, by kind of click.
        terminate_points: Points of `customer_r1` for terminating, or scrolling, when the shopper did.
        wrong_click: Customer-R1's points for a predicted click that is not the logged one. With its format reward of 1
            a readable wrong click earns 1 - 1 = 0, the same as a malformed reply; a wrong reply of another type
            earns 1. The paper's numbers imply this (section 4.3).
    """

    kind: RewardKind | str = "hierarchical"
    format: float = 0.5
    requires_rationale: bool = False
    action_type: float = 0.3
    click_name_present: float = 0.2
    typing_name_present: float = 0.1
    typing_text_present: float = 0.1
    typing_name_similarity: float = 0.1
    dars: float = 1000.0
    threshold: float = 0.75
    threshold_rule: ThresholdRule = "exceeds"
    similarity: SimilarityName = "rouge_l"
    self_certainty: SelfCertainty = "kl_uniform_policy"
    self_certainty_weight: float = 0.005
    exact_points: float = 1.0
    typing_points: float = 2000.0
    click_points: float = 1000.0
    click_type_points: dict[str, float] = msgspec.field(
        default_factory=lambda: {"product_option": 10.0, "review": 1.0, "search": 1.0}
    )
    terminate_points: float = 1.0
    wrong_click: float = -1.0

    def __post_init__(self) -> None:
        if ":" not in self.kind:
            check_choice("reward.kind", self.kind, RewardKind)
        check_choice("reward.threshold_rule", self.threshold_rule, ThresholdRule)
        check_choice("reward.similarity", self.similarity, SimilarityName)
        check_choice("reward.self_certainty", self.self_certainty, SelfCertainty)
        if not 0 <= self.threshold <= 1:
            raise BadConfig(f"reward.threshold is {self.threshold}; a similarity lies between 0 and 1, so must it.")
        if self.threshold + _MARGINS[self.threshold_rule] > 1:
            raise BadConfig(
                f"reward.threshold is {self.threshold} and no similarity exceeds 1, so no reply would be paid for one; "
                'give a lower threshold, or reward.threshold_rule = "reaches".'
            )
        if self.wrong_click > 0:
            raise BadConfig(f"reward.wrong_click is {self.wrong_click}; it is a penalty and must not be above 0.")
        for field, value in msgspec.structs.asdict(self).items():
            numbers = value.values() if isinstance(value, dict) else [value] if isinstance(value, int | float) else []
            for number in numbers:
                if not math.isfinite(number) or (number < 0 and field != "wrong_click"):
                    raise BadConfig(f"reward.{field} is {value}; it must be finite and not negative.")


REWARD_PRESETS: Mapping[str, RewardConfig] = {
    "shop_r1": RewardConfig(),
    "no_format": RewardConfig(format=0.0),
    "no_rationale": RewardConfig(self_certainty_weight=0.0),
    "no_dars": RewardConfig(dars=1.0),
    "binary_action": RewardConfig(kind="binary"),
    "binary_action_scaled": RewardConfig(kind="binary", exact_points=1000.0),
    "binary": RewardConfig(kind="binary", format=0.0, self_certainty_weight=0.0),
    "customer_r1": RewardConfig(kind="customer_r1", format=1.0, self_certainty_weight=0.0),
    "customer_r1_rl_only": RewardConfig(kind="customer_r1", format=1.0, self_certainty_weight=0.0, wrong_click=0.0),
}
LOG_LIKELIHOOD = RewardConfig(kind="log_likelihood", format=0.0, self_certainty_weight=0.0)


def reward_preset(name: str | RewardConfig) -> RewardConfig:
    """Returns the reward preset of that name, or the reward of a function; a RewardConfig passes through.

    Args:
        name: A key of REWARD_PRESETS, "module:function" or "file.py:function".

    Raises:
        BadConfig: No preset has that name.

    >>> reward_preset("no_dars").dars
    1.0
    """
    if isinstance(name, RewardConfig):
        return name
    if ":" in name:
        return RewardConfig(kind=name, format=0.0, self_certainty_weight=0.0)
    if name not in REWARD_PRESETS:
        raise BadConfig(
            f"Unknown reward preset {name!r}. {did_you_mean(name, REWARD_PRESETS)} Or give FILE.py:FUNCTION."
        )
    return REWARD_PRESETS[name]


class RewardBreakdown(msgspec.Struct, frozen=True, gc=False):
    """The reward of a reply by its parts, in points.

    Attributes:
        exact: The points for an exact match of the action (binary and Customer-R1 rewards).
        wrong_click: Customer-R1's penalty, 0 or below.
        own: The value of the user's function.
        self_certainty: s(r) as measured, not multiplied by α; None if it was not measured.
        self_certainty_weight: α.

    >>> breakdown = RewardBreakdown(format=0.5, action_type=0.25, self_certainty=20.0, self_certainty_weight=0.005)
    >>> breakdown.total, breakdown.without_certainty
    (0.85, 0.75)
    """

    format: float = 0.0
    action_type: float = 0.0
    name_present: float = 0.0
    text_present: float = 0.0
    name_similarity: float = 0.0
    text_similarity: float = 0.0
    exact: float = 0.0
    wrong_click: float = 0.0
    own: float = 0.0
    self_certainty: float | None = None
    self_certainty_weight: float = 0.0

    @property
    def without_certainty(self) -> float:
        """The sum of all parts except self-certainty: the reward of the reply's text alone."""
        return (
            self.format
            + self.action_type
            + self.name_present
            + self.text_present
            + self.name_similarity
            + self.text_similarity
            + self.exact
            + self.wrong_click
            + self.own
        )

    @property
    def total(self) -> float:
        """The sum of all parts, including α times self-certainty if it was measured."""
        if self.self_certainty is None:
            return self.without_certainty
        return self.without_certainty + self.self_certainty_weight * self.self_certainty


# The parts of a breakdown except self-certainty, with their names for people.
TERM_NAMES = {
    "format": "format",
    "action_type": "type of action",
    "name_present": "name present",
    "text_present": "text present",
    "name_similarity": "name similarity",
    "text_similarity": "text similarity",
    "exact": "exact match",
    "wrong_click": "wrong click",
    "own": "own function",
}


EMPTY_RATIONALE = 0.0  # the self-certainty of an empty rationale
NOTHING = RewardBreakdown()  # the reward of a malformed reply, and of one without a required rationale


def score_reply(
    reply: str | Reply | MalformedReply,
    logged: Action,
    config: RewardConfig,
    *,
    self_certainty: float | None = None,
    extraction: Extraction | None = None,
) -> RewardBreakdown:
    """Computes the reward of a reply to the step with the action `logged`.

    Args:
        self_certainty: s(r) of the reply's rationale under the policy that wrote it; None if it was not measured.
        extraction: How to parse a `reply` that is a text; a store's is `extraction_of(store, "strict")`. None means the
            strict one that reads `logged` (`needed_extraction`).
    """
    parsed = parse_reply(reply, extraction or needed_extraction(logged)) if isinstance(reply, str) else reply
    if not isinstance(parsed, Reply) or (config.requires_rationale and not parsed.has_rationale):
        return NOTHING
    return _score_readable(parsed, logged, config, self_certainty)


def _score_readable(
    reply: Reply, logged: Action, config: RewardConfig, self_certainty: float | None = None
) -> RewardBreakdown:
    if ":" not in config.kind:
        return score_action(reply.action, logged, config, self_certainty)
    points = load_measure("reward", config.kind)(reply, logged)
    if points is None:
        raise BadConfig(f"reward {config.kind!r} returned None; a finite number was expected.")
    return RewardBreakdown(
        format=config.format,
        own=points,
        self_certainty=self_certainty,
        self_certainty_weight=config.self_certainty_weight,
    )


def score_action(
    predicted: Action, logged: Action, config: RewardConfig, self_certainty: float | None = None
) -> RewardBreakdown:
    """Computes the reward of a readable reply with this action: table 1 of Shop-R1, or a reward for exact matches."""
    action_type = name_present = text_present = name_similarity = text_similarity = exact = wrong_click = 0.0
    if config.kind == "log_likelihood":
        raise BadConfig(
            "reward log_likelihood is measured by the policy in training, and a text was to be scored; give it to "
            "phases of GRPO alone (phases.NAME.reward), and score by another reward, such as shop_r1."
        )
    if config.kind != "hierarchical":
        # Binary: the same points for every exact match. Customer-R1, equation 2: w(a) by kind of action, and a penalty
        # for a wrong click.
        if exact_match(predicted, logged):
            exact = config.exact_points if config.kind == "binary" else exact_weight(logged, config)
        elif config.kind == "customer_r1" and is_wrong_click(predicted, logged):
            wrong_click = config.wrong_click
    elif type(predicted) is type(logged):
        action_type = config.action_type
        # Not `match`, which is 5% slower; a reward is computed for every reply.
        if isinstance(predicted, Click):
            assert isinstance(logged, Click)
            name_present, name_similarity = click_terms(predicted, logged, config)
        elif isinstance(predicted, TypeAndSubmit):
            assert isinstance(logged, TypeAndSubmit)
            name_present, text_present, name_similarity, text_similarity = type_and_submit_terms(
                predicted, logged, config
            )
        elif not isinstance(predicted, Terminate | Scroll):
            assert_never(predicted)
    return RewardBreakdown(
        format=config.format,
        action_type=action_type,
        name_present=name_present,
        text_present=text_present,
        name_similarity=name_similarity,
        text_similarity=text_similarity,
        exact=exact,
        wrong_click=wrong_click,
        self_certainty=self_certainty,
        self_certainty_weight=config.self_certainty_weight,
    )


def click_terms(predicted: Click, logged: Click, config: RewardConfig) -> tuple[float, float]:
    """Computes the terms of a click: points for a name, and DARS × the name's similarity."""
    if not logged.name:
        return 0.0, 0.0
    least = config.threshold + _MARGINS[config.threshold_rule]
    similarity = SIMILARITIES[config.similarity](predicted.name, logged.name, least)
    return config.click_name_present if predicted.name else 0.0, config.dars * similarity


def type_and_submit_terms(
    predicted: TypeAndSubmit, logged: TypeAndSubmit, config: RewardConfig
) -> tuple[float, float, float, float]:
    """Computes the terms of typing: points for a name and a text, the name's similarity, and DARS × the text's."""
    similarity, least = SIMILARITIES[config.similarity], config.threshold + _MARGINS[config.threshold_rule]
    return (
        config.typing_name_present if predicted.name and logged.name else 0.0,
        config.typing_text_present if predicted.text and logged.text else 0.0,
        config.typing_name_similarity * similarity(predicted.name, logged.name, least) if logged.name else 0.0,
        config.dars * similarity(predicted.text, logged.text, least) if logged.text else 0.0,
    )


def best_breakdown(logged: Action, config: RewardConfig) -> RewardBreakdown:
    """Returns the reward of the logged action itself: the largest possible without self-certainty."""
    return _score_readable(Reply("", logged), logged, config)


def describe_scale(config: RewardConfig) -> str:
    """Describes for readers the unit of a mean reward and the largest reward of an action.

    >>> describe_scale(REWARD_PRESETS["shop_r1"])
    'mean points a step, of at most 1,001'
    """
    if ":" in config.kind:
        return f"mean points a step, by {config.kind}"
    clicks = [Click(name="a", click_type=kind) for kind in (None, *config.click_type_points)]
    actions: list[Action] = [*clicks, TypeAndSubmit(name="a", text="a"), Terminate()]
    most = max(best_breakdown(action, config).total for action in actions)
    return f"mean points a step, of at most {most:,.4g}"


def exact_weight(logged: Action, config: RewardConfig) -> float:
    """Returns Customer-R1's w(a), the points for an exact match of `logged`; those of clicks depend on their kind."""
    match logged:
        case Click():
            return config.click_type_points.get(logged.click_type or click_type_of(logged.name), config.click_points)
        case TypeAndSubmit():
            return config.typing_points
        case Terminate() | Scroll():
            return config.terminate_points
        case _:
            assert_never(logged)
