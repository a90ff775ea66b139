"""Which figures stand in which panel, in which order and unit. What a run has not logged gets no panel.

A figure that no panel names gets one of its own, so that whatever a trainer logs is seen. `NAME_std` is the deviation
of NAME and is drawn as its band.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from shop_env.reward.score import TERM_NAMES

__all__ = ["VALIDATION", "Line", "Panel", "deviation", "panels"]

Better = Literal["high", "low"]
VALIDATION = "validation_"  # `validation_exact` is `exact` on the validation sessions; drawn as marks


@dataclass(frozen=True)
class Line:
    """A figure in a panel.

    Attributes:
        label: In the legend; "" where the panel has one line. What is dashed is the logged, everywhere.
    """

    figure: str
    label: str = ""
    colour: int = 0
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """A small chart.

    Attributes:
        unit: The label of the vertical axis.
        percent: Its figures are shares, drawn as percent.
        logarithmic: Where all values are above 0 and the highest is ten times the lowest.
        smooth: The line is a running mean; False: the values themselves.
    """

    title: str
    unit: str
    lines: tuple[Line, ...]
    percent: bool = False
    logarithmic: bool = False
    smooth: bool = True

    @property
    def is_term(self) -> bool:
        """Whether it shows one term of the reward."""
        return self.lines[0].figure.startswith("reward_")


_TYPES = (("click", "click"), ("type_and_submit", "type"), ("terminate", "end"))
_PANELS = (
    Panel("Loss", "loss", (Line("loss"),)),
    Panel("Exact match", "% of replies", (Line("exact"),), percent=True),
    Panel("Action reward", "points", (Line("action_reward"),)),
    *(Panel(f"Reward: {name}", "points", (Line(f"reward_{term}"),)) for term, name in TERM_NAMES.items()),
    Panel("Self-certainty", "s(r), nats", (Line("self_certainty"),)),
    Panel("KL to the reference", "nats per token", (Line("kl"),)),
    Panel("Entropy", "nats per token", (Line("entropy"),)),
    Panel("Groups", "groups per step", (Line("groups", "sampled"), Line("groups_used", "used", 1))),
    Panel(
        "Faults",
        "% of replies",
        (Line("malformed", "malformed"), Line("cut", "cut", 1), Line("no_rationale", "no rationale", 2)),
        percent=True,
    ),
    Panel(
        "Types of action",
        "% of actions",
        tuple(
            Line(f"{kind}_{name}", label if kind == "sampled" else "", colour, dashed=kind == "logged")
            for colour, (name, label) in enumerate(_TYPES)
            for kind in ("sampled", "logged")
        ),
        percent=True,
    ),
    Panel(
        "Commonest action",
        "% of actions",
        (Line("sampled_commonest", "sampled"), Line("logged_commonest", dashed=True)),
        percent=True,
    ),
    Panel("Length of a reply", "tokens", (Line("reply_tokens"),)),
    Panel("Learning rate", "learning rate", (Line("lr"),), smooth=False),
    Panel("Gradient norm", "norm before clipping", (Line("grad_norm"),), logarithmic=True),
    Panel("Speed", "tokens per s", (Line("tokens_per_s"),)),
    Panel("Packed tokens", "% of the rows' tokens", (Line("packed_share"),), percent=True),
    Panel("Sampling gap", "nats per token", (Line("sampling_gap"),), logarithmic=True),
    Panel("Importance weight", "mean over tokens", (Line("importance"),)),
)
_NOT_DRAWN = ("tokens", "seconds")  # the speed says it


def panels(figures: Collection[str]) -> Iterator[Panel]:
    """The panels of a phase that has these figures."""
    drawn = set(_NOT_DRAWN)
    for panel in _PANELS:
        names = {name for line in panel.lines for name in (line.figure, VALIDATION + line.figure)}
        drawn |= names | {deviation(name) for name in names}
        if not names.isdisjoint(figures):
            yield panel
    for name in figures:
        of = name.removesuffix(deviation(""))
        if name not in drawn and (of == name or of not in figures):
            yield Panel(name, name, (Line(name),))


def deviation(figure: str) -> str:
    """The figure that holds the deviation of `figure`."""
    return f"{figure}_std"
