"""The GRPO loss per token (Shao et al. 2402.03300, equations 3 and 4).

    −min(ρ·A, clip(ρ, 1−ε, 1+ε)·A) + β·KL,   ρ = π/π_old,   KL = π_ref/π − log(π_ref/π) − 1

averaged over the tokens of a reply, then over replies.
"""

import torch
from torch import Tensor

__all__ = ["grpo_loss", "reply_means"]


def grpo_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    reference_log_probs: Tensor,
    advantages: Tensor,
    reply_of_token: Tensor,
    *,
    beta: float,
    clip: float,
) -> tuple[Tensor, Tensor]:
    """The mean loss and the mean KL to the reference.

    Args:
        log_probs, old_log_probs, reference_log_probs: (N,) of the sampled tokens.
        advantages: (R,) one per reply.
        reply_of_token: (N,) which reply a token belongs to, 0 to R - 1.
    """
    ratio = torch.exp(log_probs - old_log_probs)
    advantage = advantages[reply_of_token]
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    difference = reference_log_probs - log_probs
    kl = torch.exp(difference) - difference - 1
    replies = len(advantages)
    loss = reply_means(beta * kl - gain, reply_of_token, replies).mean()
    return loss, reply_means(kl.detach(), reply_of_token, replies).mean()


def reply_means(values: Tensor, reply_of_token: Tensor, replies: int) -> Tensor:
    """(N,) per token -> (R,) the mean over each reply's tokens; 0 for a reply without tokens."""
    sums = values.new_zeros(replies).index_add(0, reply_of_token, values)
    counts = values.new_zeros(replies).index_add(0, reply_of_token, torch.ones_like(values))
    return sums / counts.clamp(min=1)
