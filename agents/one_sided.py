"""Whether an agent says one type of action far more often than people do: its exact match is then that type's share.

    list[StepRecord] ─► one_sided ─► what stands beside its row: in the training's last table, a leaderboard, a report

Who always leaves is right whenever people leave, and may so stand level with a policy that finds what they click.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from shop_env.metrics import StepRecord

__all__ = ["OneSided", "one_sided"]

MOSTLY = 0.75  # of the replies
MORE_THAN_LOGGED = 0.3  # of the steps


class OneSided(NamedTuple):
    """One type of action, its share of the replies, and of what people did on the same steps."""

    action_type: str
    share: float
    logged: float

    @property
    def sentence(self) -> str:
        return (
            f"mostly one answer: {self.action_type} in {self.share:.0%} of its replies, {self.logged:.0%} of people's "
            "actions; read macro-F1 beside its exact match"
        )


def one_sided(records: Sequence[StepRecord]) -> OneSided | None:
    """The type of action that it says far more often than people do; None where there is none."""
    answered = [record for record in records if record.error is None]
    said = Counter(record.predicted["type"] for record in answered if record.predicted is not None)
    for action_type, count in said.most_common(1):
        logged = sum(record.logged["type"] == action_type for record in answered)
        found = OneSided(action_type, count / len(answered), logged / len(answered))
        if found.share >= MOSTLY and found.share - found.logged >= MORE_THAN_LOGGED:
            return found
    return None
