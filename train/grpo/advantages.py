"""From the rewards of a group to advantages (GRPO: Shao et al. 2402.03300, equation 4).

Within a group any positive affine change of the rewards cancels. A group whose action rewards are all equal would carry
nothing but the self-certainty term, its noise blown up to unit variance; such groups are left out (`informative`).
"""

from collections.abc import Sequence

from torch import Tensor

__all__ = ["group_advantages", "informative"]


def informative(action_rewards: Sequence[float]) -> bool:
    """Whether the actions of a group earned different rewards.

    >>> informative([0.5, 0.5]), informative([0.5, 1000.5])
    (False, True)
    """
    return any(reward != action_rewards[0] for reward in action_rewards)


def group_advantages(rewards: Tensor, *, standardize: bool = True) -> Tensor:
    """(groups, G) rewards -> (groups, G) advantages: centred, and divided by the group's standard deviation.

    >>> import torch
    >>> group_advantages(torch.tensor([[0.0, 2.0]])).round(decimals=3)
    tensor([[-0.7070,  0.7070]])
    """
    centred = rewards - rewards.mean(dim=1, keepdim=True)
    return centred / (rewards.std(dim=1, keepdim=True) + 1e-6) if standardize else centred
