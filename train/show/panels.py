"""Which panels a phase has: panels.toml lists the metrics of each, with order and unit.

What a run has not logged gets no panel; a metric that no panel names gets one of its own. `NAME_std` is the deviation
of NAME and is drawn as its band.
"""

from collections.abc import Collection, Iterator
from importlib import resources

import msgspec

from shop_env.reward.score import TERM_NAMES

VALIDATION = "validation_"  # `validation_exact` is `exact` on the validation sessions; drawn as marks


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure in a panel.

    Attributes:
        label: In the legend; "" where the panel has one line. What is dashed is the logged, everywhere.
    """

    figure: str
    label: str = ""
    colour: int = 0
    dashed: bool = False


class Panel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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


def _read_panels() -> Iterator[Panel]:
    """Those of panels.toml; one that names a term of the reward stands for each of them."""
    text = (resources.files("train.show") / "panels.toml").read_text(encoding="utf-8")
    for panel in msgspec.toml.decode(text, type=dict[str, list[Panel]])["panels"]:
        if "{term}" not in panel.title:
            yield panel
            continue
        for term, name in TERM_NAMES.items():
            line = Line(panel.lines[0].figure.format(term=term))
            yield msgspec.structs.replace(panel, title=panel.title.format(term=name), lines=(line,))


_PANELS = tuple(_read_panels())
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
