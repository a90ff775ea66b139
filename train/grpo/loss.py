"""The GRPO loss per token (Shao et al. 2402.03300, equations 3 and 4).

    −w·min(ρ·A, clip(ρ, 1−ε_low, 1+ε_high)·A) + β·KL,   ρ = π/π_old,   w = min(π_old/π_sampled, cap)

w is 1 unless a cap is given: the truncated importance weight of what was sampled in other numerics than those of π_old
(Yao et al., "Your efficient RL framework secretly brings you off-policy RL training", 2025).

The KL to the reference is estimated from the sampled token alone, x = log(π_ref/π) (Schulman, approximating KL):

    k3   exp(x) − x − 1     GRPO's own, never negative; the default
    k2   x² / 2             its gradient is that of the true KL on policy
    k1   −x                 unbiased, of either sign; its gradient on policy is 0 on average

Tokens are weighed so that the loss of a batch is a sum over its parts, however it is cut into forward passes.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from train.grpo.config import KlEstimator, LossMean

__all__ = ["grpo_loss", "importance_weights", "kl_divergence", "token_weights"]


def token_weights(lengths_R: Sequence[int], mean: LossMean, *, replies: int, tokens: int, longest: int) -> Tensor:
    """(N,) the weight of each token of these R replies in the loss of a batch of `replies` replies, `tokens` tokens.

    Args:
        mean: `reply` averages over the tokens of a reply, then over replies (GRPO); `token` over all tokens alike
            (DAPO, 2503.14476); `constant` divides a reply's sum by `longest`, whatever its length (Dr. GRPO).

    >>> token_weights([1, 3], "reply", replies=2, tokens=4, longest=8).tolist()
    [0.5, 0.1666666716337204, 0.1666666716337204, 0.1666666716337204]
    """
    lengths = torch.tensor(lengths_R)
    if mean == "token":
        return torch.full((int(lengths.sum()),), 1 / tokens)
    per_token = 1 / (lengths * replies) if mean == "reply" else torch.full((len(lengths),), 1 / (longest * replies))
    return per_token.repeat_interleave(lengths)


def kl_divergence(log_probs_N: Tensor, reference_log_probs_N: Tensor, estimator: KlEstimator = "k3") -> Tensor:
    """(N,) the estimate of KL(π ‖ π_ref) from each sampled token."""
    x = reference_log_probs_N - log_probs_N
    if estimator == "k3":
        return torch.exp(x) - x - 1
    return x.square() / 2 if estimator == "k2" else -x


def importance_weights(old_log_probs_N: Tensor, sampled_log_probs_N: Tensor, cap: float | None) -> Tensor:
    """(N,) how much likelier each token was under the policy than under what sampled it, at most `cap`; None: all 1."""
    if cap is None:
        return torch.ones_like(old_log_probs_N)
    return torch.exp(old_log_probs_N - sampled_log_probs_N).clamp(max=cap)


def grpo_loss(
    log_probs_N: Tensor,
    old_log_probs_N: Tensor,
    advantages_N: Tensor,
    kl_N: Tensor,
    importance_N: Tensor,
    *,
    beta: float,
    clip_low: float,
    clip_high: float,
) -> Tensor:
    """(N,) the loss of each token.

    Args:
        log_probs_N, old_log_probs_N: Of the sampled tokens, now and when they were sampled.
        advantages_N: Of the reply that a token belongs to.
    """
    ratio = torch.exp(log_probs_N - old_log_probs_N)
    gain = torch.minimum(ratio * advantages_N, ratio.clamp(1 - clip_low, 1 + clip_high) * advantages_N)
    return beta * kl_N - importance_N * gain
