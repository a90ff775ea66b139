"""How often shoppers click, type and terminate: the mixes of actions of the papers' logs, and of a store."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from replay_sessions.schema import Action, reply_action

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
    def terminate_share(self) -> float:
        """b: the share of steps at which the shopper terminates.

        >>> round(PAPER_MIXES[0].terminate_share, 4)
        0.2725
        """
        return self.share("terminate")

    @property
    def click_share(self) -> float:
        """q: the share of clicks among the steps at which the shopper does not terminate.

        >>> round(PAPER_MIXES[0].click_share, 4)
        0.5048
        """
        return self.click / (self.click + self.type_and_submit)

    @property
    def f1_of_always_terminate(self) -> float:
        """The macro-F1 of always terminating: F1 is 2b / (1 + b) for terminate and 0 for the other two.

        >>> round(PAPER_MIXES[0].f1_of_always_terminate, 4)
        0.1428
        """
        b = self.terminate_share
        return 2 * b / (1 + b) / sum(self.share(kind) > 0 for kind in TYPES)

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

# Shop-R1, tables 2 and 4, 3B: exact accuracy and type F1, as shares, on the first of these mixes.
PAPER_RESULTS = {
    "Shop-R1": (0.2772, 0.3128),
    "without the reward scale": (0.2783, 0.1170),
    "with a binary action reward": (0.2741, 0.1211),
    "SFT": (0.1676, 0.2452),
}


def count_mix(actions: Iterable[Action], name: str) -> Mix:
    """The mix of logged actions."""
    counts = Counter(reply_action(action)["type"] for action in actions)
    return Mix(name, *(counts[kind] for kind in TYPES))
