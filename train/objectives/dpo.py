"""DPO (2305.18290, equation 7) from the logged reply, preferred, against each sampled one that earns less.

Its β is `grpo.beta`: the paper has 0.1 to 0.5.
"""

from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import logsigmoid

from train.grpo.chunk import Chunk
from train.grpo.trainer import GroupTrainer
from train.rollouts.engine import SampledReply


class Dpo(GroupTrainer):
    """Raises the logged reply above what the policy itself writes, both relative to where it began."""

    def replies(self, logged: SampledReply, sampled: Sequence[SampledReply]) -> Sequence[SampledReply]:
        """The group of a step."""
        return [logged, *sampled]

    def loss(self, chunk: Chunk) -> Tensor:
        """A mean over the sampled replies: 0 for one that earns as much as the logged one."""
        margin = chunk.by_reply(chunk.log_probs - chunk.reference_log_probs)
        is_worse = chunk.rewards[:, 1:] < chunk.rewards[:, :1]
        losses = -logsigmoid(self.config.beta * (margin[:, :1] - margin[:, 1:]))
        return (losses * is_worse).sum() / (chunk.batch.replies - chunk.batch.groups)
