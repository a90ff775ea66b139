"""Whether an agent says one type of action far more often than people do: its exact match is then that type's share.

    list[StepRecord] ─► one_sided ─► a sentence beside its row (the training's last table, the leaderboard)

Who always leaves is right whenever people leave, and may so stand level with a policy that finds what they click.
"""

from collections import Counter
from collections.abc import Sequence

from shop_env.metrics import StepRecord

__all__ = ["one_sided"]

MOSTLY = 0.75  # of the replies
MORE_THAN_LOGGED = 0.3  # of the steps


def one_sided(records: Sequence[StepRecord]) -> str | None:
    """What is to be said of it; None where there is nothing."""
    answered = [record for record in records if record.error is None]
    said = Counter(record.predicted["type"] for record in answered if record.predicted is not None)
    for kind, count in said.most_common(1):
        share = count / len(answered)
        logged = sum(record.logged["type"] == kind for record in answered) / len(answered)
        if share >= MOSTLY and share - logged >= MORE_THAN_LOGGED:
            return (
                f"mostly one answer: {kind} in {share:.0%} of its replies, {logged:.0%} of people's actions; read "
                "macro-F1 beside its exact match"
            )
    return None
