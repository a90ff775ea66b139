"""DPO (2305.18290, equation 7), which prefers the logged reply to each sampled reply with a lower reward.

Its β is `grpo.beta`; the paper uses 0.1 to 0.5.
"""

from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import logsigmoid

from train.grpo.chunk import Chunk
from train.grpo.trainer import GroupTrainer
from train.rollouts.engine import SampledReply


class Dpo(GroupTrainer):
    """Raises the likelihood of the logged reply above those of sampled ones, relative to the initial policy."""

    def replies(self, logged: SampledReply, sampled: Sequence[SampledReply]) -> Sequence[SampledReply]:
        """Returns the replies of a step's group: the logged one, then the sampled ones."""
        return [logged, *sampled]

    def loss(self, chunk: Chunk) -> Tensor:
        """Computes the mean loss over the sampled replies; it is 0 for a reply that earns as much as the logged one."""
        margin = chunk.by_reply(chunk.log_probs - chunk.reference_log_probs)
        is_worse = chunk.rewards[:, 1:] < chunk.rewards[:, :1]
        losses = -logsigmoid(self.config.beta * (margin[:, :1] - margin[:, 1:]))
        return (losses * is_worse).sum() / (chunk.batch.replies - chunk.batch.groups)
