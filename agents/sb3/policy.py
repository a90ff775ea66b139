"""A network that scores every candidate of a page with the same weights, for Stable-Baselines3.

    page ─► embedding ─┬─► candidate 1 ─► score ┐
                       ├─► candidate 2 ─► score ├─► softmax over the candidates of the page
                       └─► value                ┘

The usual MLP has separate weights for each of the 32 candidates. The network needs the discrete view `dict`
(shop_env.wrappers.DiscreteActions). It masks absent candidates itself, so it works for algorithms with and without
action masks:

    PPO(CandidatePolicy, env)        MaskablePPO(MaskableCandidatePolicy, env)
"""

from typing import Any

import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

_ABSENT = -1e8  # the score of an absent candidate


class _Scores(BaseFeaturesExtractor):  # type: ignore[misc]  # the library ships no types
    """Extracts the candidates' scores and the page's embedding, concatenated, (B, candidates + hidden)."""

    def __init__(self, observation_space: spaces.Dict, hidden: int) -> None:
        candidates, features = observation_space["candidates"].shape or (0, 0)
        super().__init__(observation_space, features_dim=candidates + hidden)
        page = (observation_space["page"].shape or (0,))[0]
        self.page = nn.Sequential(nn.Linear(page, hidden), nn.Tanh())
        self.candidate = nn.Linear(features, hidden)
        self.context = nn.Linear(hidden, hidden)
        self.score = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        page = self.page(observations["page"])
        embeddings = self.candidate(observations["candidates"]) + self.context(page)[:, None]
        scores = self.score(embeddings)[..., 0].masked_fill(observations["mask"] == 0, _ABSENT)
        return torch.cat([scores, page], dim=1)


class _Parts(nn.Module):
    """Splits the output of `_Scores` into the inputs of the policy and of the value function."""

    def __init__(self, candidates: int, hidden: int) -> None:
        super().__init__()
        self.latent_dim_pi, self.latent_dim_vf = candidates, hidden

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        return features[:, : self.latent_dim_pi]

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        return features[:, self.latent_dim_pi :]


class _ScoresActions:
    """Makes an actor-critic policy of SB3 take the scores as its logits."""

    def __init__(self, *arguments: Any, hidden: int = 64, **options: Any) -> None:
        self._hidden = hidden
        extractor = {"features_extractor_class": _Scores, "features_extractor_kwargs": {"hidden": hidden}}
        # Orthogonal initialization is meant for deep stacks of equal layers; here it slows down learning.
        super().__init__(*arguments, **{"ortho_init": False, **options, **extractor})

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = _Parts(int(self.action_space.n), self._hidden)  # type: ignore[attr-defined]

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)  # type: ignore[misc]
        self.action_net = nn.Identity()
        self.optimizer = self.optimizer_class(  # type: ignore[attr-defined]
            self.parameters(),  # type: ignore[attr-defined]
            lr=lr_schedule(1),
            **self.optimizer_kwargs,  # type: ignore[attr-defined]
        )


class CandidatePolicy(_ScoresActions, ActorCriticPolicy):  # type: ignore[misc]
    """The policy for PPO and A2C."""


class MaskableCandidatePolicy(_ScoresActions, MaskableActorCriticPolicy):  # type: ignore[misc]
    """The policy for MaskablePPO."""
