"""GRPO with the shopper's own reply in each group, as in LUFFY (2504.14945), so that no group lacks the best reward.

The logged reply is learnt from as a sampled one is: its ratio is 1 before the first update, and its advantage is large
where the policy rarely finds it. LUFFY weighs its tokens by their probability: so does `grpo.importance_sampling_cap`,
which takes a logged reply's tokens for drawn with probability 1.
"""

from collections.abc import Sequence

from train.objectives.grpo import GrpoTrainer
from train.rollouts.engine import SampledReply


class GrpoWithLogged(GrpoTrainer):
    """Maximizes the expected reward, the logged reply being one of G + 1."""

    def replies(self, logged: SampledReply, sampled: Sequence[SampledReply]) -> Sequence[SampledReply]:
        """The group of a step."""
        return [logged, *sampled]
