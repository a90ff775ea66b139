"""How often shoppers click, type and leave: the mixes of actions of the papers' logs, and of a store."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from replay_sessions.schema import Action, Click, TypeAndSubmit

__all__ = ["PAPER_MIXES", "PAPER_ROWS", "TYPES", "Mix", "mix_of"]

TYPES = ("click", "type_and_submit", "terminate")


class Mix(msgspec.Struct, frozen=True):
    """Counts of each type of action."""

    name: str
    click: int
    type_and_submit: int
    terminate: int

    @property
    def steps(self) -> int:
        return self.click + self.type_and_submit + self.terminate

    @property
    def leaving(self) -> float:
        """b: the share of steps at which the shopper leaves.

        >>> round(PAPER_MIXES[0].leaving, 4)
        0.2725
        """
        return self.terminate / self.steps

    @property
    def clicks_among_others(self) -> float:
        """q: the share of clicks among the steps at which the shopper stays.

        >>> round(PAPER_MIXES[0].clicks_among_others, 4)
        0.5048
        """
        return self.click / (self.click + self.type_and_submit)

    @property
    def f1_of_leaving(self) -> float:
        """The macro-F1 of always leaving: F1 is 2b / (1 + b) for terminate and 0 for the other two.

        >>> round(PAPER_MIXES[0].f1_of_leaving, 4)
        0.1428
        """
        return 2 * self.leaving / (1 + self.leaving) / sum(self.share(kind) > 0 for kind in TYPES)

    def share(self, kind: str) -> float:
        """The share of a type."""
        count: int = getattr(self, kind)
        return count / self.steps


# Shop-R1, section 4.1; OPeRA, table 2 (the first action of each session left out).
PAPER_MIXES = (
    Mix("Shop-R1 test", 690, 677, 512),
    Mix("Shop-R1 train", 64_578, 68_000, 44_371),
    Mix("OPeRA-test", 786, 76, 40),
)

# Shop-R1, tables 2 and 4, 3B: exact accuracy and type F1, in percent, on the first of these mixes.
PAPER_ROWS = {
    "Shop-R1": (27.72, 31.28),
    "without the reward scale": (27.83, 11.70),
    "with a binary action reward": (27.41, 12.11),
    "SFT": (16.76, 24.52),
}


def mix_of(actions: Iterable[Action], name: str) -> Mix:
    """The mix of logged actions."""
    kinds = Counter(
        "click" if isinstance(one, Click) else "type_and_submit" if isinstance(one, TypeAndSubmit) else "terminate"
        for one in actions
    )
    return Mix(name, kinds["click"], kinds["type_and_submit"], kinds["terminate"])
