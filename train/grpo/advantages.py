"""From the rewards of a group to advantages (GRPO: Shao et al. 2402.03300, equation 4).

Within a group any positive affine change of the rewards cancels when they are scaled by the group. A group whose action
rewards are all equal would then carry nothing but the self-certainty term, its noise blown up to unit variance; such
groups are left out (`informative`).
"""

from collections.abc import Sequence

from torch import Tensor

from train.grpo.config import AdvantageScale

__all__ = ["informative", "scaled_advantages"]


def informative(action_rewards: Sequence[float]) -> bool:
    """Whether the actions of a group earned different rewards.

    >>> informative([0.5, 0.5]), informative([0.5, 1000.5])
    (False, True)
    """
    return any(reward != action_rewards[0] for reward in action_rewards)


def scaled_advantages(rewards_P_G: Tensor, scale: AdvantageScale = "group", *, epsilon: float = 1e-6) -> Tensor:
    """(P, G) rewards -> (P, G) advantages: less the mean of their group, and scaled.

    Args:
        scale: `group` divides by the group's standard deviation (GRPO), `batch` by that of all P · G rewards, `none`
            by nothing (Dr. GRPO, Liu et al. 2503.20783).
        epsilon: Added to the standard deviation.

    >>> import torch
    >>> scaled_advantages(torch.tensor([[0.0, 2.0]])).round(decimals=3)
    tensor([[-0.7070,  0.7070]])
    """
    centred = rewards_P_G - rewards_P_G.mean(dim=1, keepdim=True)
    if scale == "none":
        return centred
    deviation = rewards_P_G.std(dim=1, keepdim=True) if scale == "group" else rewards_P_G.std()
    return centred / (deviation + epsilon)
