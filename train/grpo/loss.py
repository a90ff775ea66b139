"""Advantages of a group and the GRPO loss per token (Shao et al. 2402.03300, equations 3 and 4).

A positive affine change of a group's rewards cancels when they are scaled by the group. A group whose action rewards
are all equal would then carry nothing but the self-certainty term, its noise blown up to unit variance; such groups are
filtered out (`is_informative`). The loss, with A the advantage of a token's reply:

    −w·min(ρ·A, clip(ρ, 1−ε, 1+ε)·A) + β·KL,   ρ = π/π_old,   w = min(π_old/π_sampled, cap)

w is 1 unless a cap is given: the truncated importance weight of what was sampled in other numerics than those of π_old
(Yao et al., "Your efficient RL framework secretly brings you off-policy RL training", 2025).

The KL to the reference is estimated from the sampled token alone, as exp(x) − x − 1 with x = log(π_ref/π): GRPO's own,
never negative (Schulman, approximating KL, k3).

Tokens are weighted so that the loss of a batch is a sum over its parts, however it is cut into forward passes.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from train.grpo.config import ScaleRewards

DEVIATION_EPSILON = 1e-6  # added to the standard deviation by which rewards are divided


def token_weights(lengths_R: Sequence[int], replies: int) -> Tensor:
    """(N,) the weight of each token of these R replies: a mean over a reply's tokens, then over a batch's `replies`.

    >>> token_weights([1, 3], replies=2).tolist()
    [0.5, 0.1666666716337204, 0.1666666716337204, 0.1666666716337204]
    """
    lengths = torch.tensor(lengths_R)
    return (1 / (lengths * replies)).repeat_interleave(lengths)


def kl_divergence(log_probs_N: Tensor, reference_log_probs_N: Tensor) -> Tensor:
    """(N,) the estimate of KL(π ‖ π_ref) from each sampled token."""
    x = reference_log_probs_N - log_probs_N
    return torch.exp(x) - x - 1


def importance_weights(old_log_probs_N: Tensor, sampled_log_probs_N: Tensor, cap: float | None) -> Tensor:
    """(N,) how much likelier each token was under the policy than under what sampled it, at most `cap`; None: all 1."""
    if cap is None:
        return torch.ones_like(old_log_probs_N)
    return torch.exp(old_log_probs_N - sampled_log_probs_N).clamp(max=cap)


def clipped_gain(ratio_N: Tensor, advantages_N: Tensor, epsilon: float) -> Tensor:
    """(N,) min(ρ·A, clip(ρ, 1−ε, 1+ε)·A) of each token, A the advantage of the reply that it belongs to."""
    return torch.minimum(ratio_N * advantages_N, ratio_N.clamp(1 - epsilon, 1 + epsilon) * advantages_N)


def is_informative(action_rewards: Sequence[object]) -> bool:
    """Returns whether the actions of a group earned different rewards, or differ in what decides them.

    >>> is_informative([0.5, 0.5]), is_informative([0.5, 1000.5])
    (False, True)
    """
    return any(reward != action_rewards[0] for reward in action_rewards)


def scaled_advantages(rewards_P_G: Tensor, scale: ScaleRewards = "group") -> Tensor:
    """(P, G) rewards -> (P, G) advantages: minus the mean of their group, and scaled.

    Args:
        scale: `group` divides by the group's standard deviation (GRPO), `none` by nothing (Dr. GRPO, Liu et al.
            2503.20783).

    >>> import torch
    >>> scaled_advantages(torch.tensor([[0.0, 2.0]])).round(decimals=3)
    tensor([[-0.7070,  0.7070]])
    """
    centered = rewards_P_G - rewards_P_G.mean(dim=1, keepdim=True)
    if scale == "none":
        return centered
    return centered / (rewards_P_G.std(dim=1, keepdim=True) + DEVIATION_EPSILON)
