"""The advantages of a group and the GRPO loss per token (Shao et al. 2402.03300, equations 3 and 4).

Scaling by the group cancels a positive affine change of its rewards. If all action rewards of a group are equal, only
the noise of the self-certainty term would remain, scaled to unit variance. Such groups are filtered out
(`is_informative`). The loss, with A the advantage of a token's reply:

    −w·min(ρ·A, clip(ρ, 1−ε, 1+ε)·A) + β·KL,   ρ = π/π_old,   w = min(π_old/π_sampled, cap)

w is 1 unless a cap is given. With a cap it is the truncated importance weight of tokens sampled with other numerics
than those of π_old (Yao et al., "Your efficient RL framework secretly brings you off-policy RL training", 2025).

The KL to the reference is estimated from the sampled token only, as exp(x) − x − 1 with x = log(π_ref/π). This is
GRPO's estimator, which is never negative (Schulman, approximating KL, k3).

Tokens are weighted such that the loss of a batch is the sum over its micro-batches, however it is split.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from train.grpo.config import LossType, ScaleRewards

DEVIATION_EPSILON = 1e-6  # added to the standard deviation by which rewards are divided


def token_weights(
    lengths_R: Sequence[int], loss_type: LossType = "grpo", *, replies: int, tokens: int, max_new_tokens: int
) -> Tensor:
    """Computes the weight (N,) of each token in the loss of a batch.

    Args:
        lengths_R: The number of tokens of each of R replies.
        loss_type: `grpo` takes the mean over the tokens of each reply, then over replies; `dapo` the mean over tokens
            (2503.14476, equation 8); `dr_grpo` divides by a constant length (2503.20783, section 3.2).
        replies, tokens: The number of replies and of their tokens in the batch.
        max_new_tokens: The constant length.

    >>> token_weights([1, 3], replies=2, tokens=4, max_new_tokens=8).tolist()
    [0.5, 0.1666666716337204, 0.1666666716337204, 0.1666666716337204]
    """
    lengths = torch.tensor(lengths_R)
    divisors = {"grpo": lengths * replies, "dapo": tokens, "dr_grpo": replies * max_new_tokens}
    return (1 / torch.as_tensor(divisors[loss_type])).expand_as(lengths).repeat_interleave(lengths)


def kl_divergence(log_probs_N: Tensor, reference_log_probs_N: Tensor) -> Tensor:
    """Estimates KL(π ‖ π_ref) from each sampled token, (N,)."""
    x = reference_log_probs_N - log_probs_N
    return torch.exp(x) - x - 1


def importance_weights(old_log_probs_N: Tensor, sampled_log_probs_N: Tensor, cap: float | None) -> Tensor:
    """Computes min(π_old/π_sampled, cap) of each token, (N,); all are 1 if `cap` is None."""
    if cap is None:
        return torch.ones_like(old_log_probs_N)
    return torch.exp(old_log_probs_N - sampled_log_probs_N).clamp(max=cap)


def clipped_gain(ratio_N: Tensor, advantages_N: Tensor, epsilon: float) -> Tensor:
    """Computes min(ρ·A, clip(ρ, 1−ε, 1+ε)·A) of each token, (N,), with A the advantage of its reply."""
    return torch.minimum(ratio_N * advantages_N, ratio_N.clamp(1 - epsilon, 1 + epsilon) * advantages_N)


def is_informative(action_rewards: Sequence[object]) -> bool:
    """Returns whether the items of a group differ: its action rewards, or the tokens that decide the rewards.

    >>> is_informative([0.5, 0.5]), is_informative([0.5, 1000.5])
    (False, True)
    """
    return any(reward != action_rewards[0] for reward in action_rewards)


def scaled_advantages(rewards_P_G: Tensor, scale: ScaleRewards = "group") -> Tensor:
    """Computes advantages (P, G) from rewards (P, G): subtracts the mean of each group, and scales.

    Args:
        rewards_P_G: The rewards.
        scale: `group` divides by the group's standard deviation (GRPO); `none` does not divide (Dr. GRPO, Liu et al.
            2503.20783).

    >>> import torch
    >>> scaled_advantages(torch.tensor([[0.0, 2.0]])).round(decimals=3)
    tensor([[-0.7070,  0.7070]])
    """
    centered = rewards_P_G - rewards_P_G.mean(dim=1, keepdim=True)
    if scale == "none":
        return centered
    return centered / (rewards_P_G.std(dim=1, keepdim=True) + DEVIATION_EPSILON)


def expected_terms(
    log_probs: Tensor, reference: Tensor | None, rewards: Tensor, is_logged: Tensor
) -> dict[str, Tensor]:
    """Computes sums over actions a of several steps, each weighted by its probability.

    Args:
        log_probs: The log-probabilities of the actions, (A,); those of a step sum to 1 as probabilities.
        reference: The same under the frozen policy; None for the policy itself.
        rewards: The rewards, (A,).
        is_logged: 1 at actions that match the logged one, else 0, (A,).

    Returns:
        The reward (`action_reward`), the probability of the logged action (`exact`), the entropy and the KL to the
        reference.
    """
    probabilities = log_probs.exp()
    gaps = torch.zeros_like(log_probs) if reference is None else log_probs - reference
    columns = {"action_reward": rewards, "exact": is_logged, "entropy": -log_probs, "kl": gaps}
    return {name: (probabilities * column).sum() for name, column in columns.items()}
