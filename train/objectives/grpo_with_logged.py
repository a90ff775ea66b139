"""GRPO with the shopper's own reply in each group, as in LUFFY (2504.14945), so that no group lacks the best reward.

The logged reply is treated like a sampled one: its ratio is 1 before the first update, and its advantage is large if
the policy rarely samples it. LUFFY weights its tokens by their probability. `grpo.importance_sampling_cap` does the
same, because tokens of a logged reply count as drawn with probability 1.
"""

from collections.abc import Sequence

from train.objectives.grpo import GrpoTrainer
from train.rollouts.engine import SampledReply


class GrpoWithLogged(GrpoTrainer):
    """Maximizes the expected reward, the logged reply being one of G + 1."""

    def replies(self, logged: SampledReply, sampled: Sequence[SampledReply]) -> Sequence[SampledReply]:
        """Returns the replies of a step's group: the logged one, then the sampled ones."""
        return [logged, *sampled]
