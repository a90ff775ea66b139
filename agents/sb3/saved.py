"""Saves a trained Stable-Baselines3 policy as safetensors and JSON, and loads it as the agent `sb3`.

    DIR/policy.safetensors    DIR/sb3_policy.json

The zip files of SB3's `model.save` hold pickled Python objects. Loading such a file runs code, so this module does not.
To use a zip file, load it with SB3 and pass the model to `save_policy`.

    observation ─► candidates and features ─► number ─► reply

shop-r1 rank --agents "sb3?path=runs/ppo" --out runs/board
shop-r1 rank --agents "sampled=sb3?path=runs/ppo&sample=true" --out runs/board
"""

import inspect
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import msgspec
import numpy as np
import torch
from gymnasium import spaces
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from stable_baselines3.common.policies import BasePolicy

from agents.adapted import Distribution, DistributionAgent, Floats
from replay_sessions.foundation.durable_files import replace_file, replacing
from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch
from replay_sessions.foundation.records import Config
from shop_env.evaluation.answering import Answer, Seeds
from shop_env.observation import Observation
from shop_env.wrappers import View, discrete_view, feature_space

POLICY_FILE, WEIGHTS_FILE = "sb3_policy.json", "policy.safetensors"
TRUSTED = ("stable_baselines3.", "sb3_contrib.", "agents.sb3.")  # a file may only name classes of these packages

_EPSILON = 1e-12
TRAINING_ONLY = ("optimizer_class", "optimizer_kwargs", "use_sde")


class SavedPolicy(Config):
    """The content of sb3_policy.json, from which the network is built.

    Attributes:
        policy: The policy's class, `module:Class`.
        policy_kwargs: The arguments of the class besides the spaces.
        algorithm: The name of the algorithm that trained the policy.
        max_candidates, view: The arguments of the DiscreteActions that the policy was trained on.
        scrolls: Whether scroll was among its candidates.
    """

    version: int = 1
    policy: str
    policy_kwargs: dict[str, Any]
    algorithm: str
    max_candidates: int
    view: View
    scrolls: bool = False


def save_policy(model: Any, folder: Path | str) -> SavedPolicy:
    """Writes the policy of an SB3 model that was trained on DiscreteActions, and returns its description.

    Raises:
        BadConfig: The model was trained on other spaces, or its policy has arguments that JSON cannot hold.
    """
    view: View = "dict" if isinstance(model.observation_space, spaces.Dict) else "flat"
    max_candidates = int(getattr(model.action_space, "n", 0))
    if max_candidates < 2 or model.observation_space != feature_space(max_candidates, view):
        raise BadConfig(
            f"The model acts on {model.action_space} and sees {model.observation_space}: not what "
            "shop_env.wrappers.DiscreteActions shows, so no agent can be made of it."
        )
    policy_class, env = type(model.policy), model.get_env()
    saved = SavedPolicy(
        policy=f"{policy_class.__module__}:{policy_class.__qualname__}",
        policy_kwargs={key: value for key, value in model.policy_kwargs.items() if key not in TRAINING_ONLY},
        algorithm=type(model).__name__,
        max_candidates=max_candidates,
        view=view,
        scrolls=env is not None and all(env.get_attr("scrolls")),
    )
    try:
        text = msgspec.json.format(msgspec.json.encode(saved))
    except (TypeError, msgspec.MsgspecError) as error:
        raise BadConfig(f"policy_kwargs {model.policy_kwargs} cannot be written as JSON: {error}") from error
    folder = Path(folder)
    # Clones, because SB3 lists shared layers several times and safetensors refuses tensors that share memory.
    weights = {name: tensor.detach().cpu().clone() for name, tensor in model.policy.state_dict().items()}
    with replacing(folder / WEIGHTS_FILE) as partial:
        save_file(weights, partial)
    replace_file(folder / POLICY_FILE, text + b"\n")
    return saved


def load_policy(folder: Path | str, policy_class: type[Any] | None = None) -> tuple[Any, SavedPolicy]:
    """Loads a policy in evaluation mode, and its description.

    Args:
        folder: The folder that `save_policy` wrote.
        policy_class: The policy's class if it is not in SB3, sb3-contrib or agents.sb3, because a file may only name
            classes of these. None means the class that the file names.

    Raises:
        CheckpointMismatch: Files are missing or damaged, or do not fit together.
    """
    folder = Path(folder)
    saved = _description(folder)
    policy_class = policy_class or _policy_class(saved, folder)
    observation_space = feature_space(saved.max_candidates, saved.view)
    try:
        policy = policy_class(
            observation_space, spaces.Discrete(saved.max_candidates), _no_schedule, **saved.policy_kwargs
        )
        policy.load_state_dict(load_file(folder / WEIGHTS_FILE))
    except (OSError, SafetensorError, RuntimeError, TypeError) as error:
        raise CheckpointMismatch(f"'{folder}' does not hold the weights of a {saved.policy}: {error}") from error
    policy.set_training_mode(False)
    return policy, saved


def _description(folder: Path) -> SavedPolicy:
    try:
        return msgspec.json.decode((folder / POLICY_FILE).read_bytes(), type=SavedPolicy)
    except OSError as error:
        raise CheckpointMismatch(
            f"No saved policy at '{folder}': it holds no {POLICY_FILE}. Train one with python -m agents.sb3.train, or "
            "use agents.sb3.saved.save_policy; SB3's zip files hold pickled objects and are not loaded."
        ) from error
    except msgspec.DecodeError as error:
        raise CheckpointMismatch(f"'{folder / POLICY_FILE}' cannot be read: {error}") from error


def _policy_class(saved: SavedPolicy, folder: Path) -> type[Any]:
    if not saved.policy.startswith(TRUSTED):
        raise CheckpointMismatch(
            f"'{folder}' wants the class {saved.policy}, and a file may name only those of SB3, sb3-contrib and "
            "agents.sb3: give the class to load_policy(folder, policy_class)."
        )
    try:
        policy_class = resolve_name(saved.policy)
    except (ImportError, AttributeError) as error:
        raise CheckpointMismatch(f"'{folder}' wants {saved.policy}, which cannot be loaded: {error}") from error
    if not inspect.isclass(policy_class) or not issubclass(policy_class, BasePolicy):
        raise CheckpointMismatch(f"'{folder}' wants {saved.policy}, which is no policy of this version of SB3.")
    return policy_class


def _no_schedule(_: float) -> float:
    """Returns the learning rate that SB3 requires to build a policy; nothing is trained with it."""
    return 0.0


class Sb3Agent(DistributionAgent):
    """Chooses among the page's candidates as a saved policy does; its replies have no rationale.

    Args:
        path: The folder that agents.sb3.train or agents.sb3.saved.save_policy wrote.
        sample: Whether to sample from the policy instead of taking its likeliest candidate; actor-critic policies only.
        policy_class: See agents.sb3.saved.load_policy.
    """

    def __init__(self, path: str, *, sample: bool = False, policy_class: type[Any] | None = None) -> None:
        super().__init__(temperature=float(sample))
        self._policy, self.saved = load_policy(path, policy_class)
        self._is_stochastic = hasattr(self._policy, "get_distribution")
        if sample and not self._is_stochastic:
            raise BadConfig(f"'{path}' was trained by {self.saved.algorithm}, which gives no probabilities to sample.")

    def answer(self, observations: Sequence[Observation], seeds: Seeds, probabilities: bool) -> list[Answer]:
        """Returns a reply to each page, with probabilities if the policy gives any (DQN gives none)."""
        return super().answer(observations, seeds, probabilities and self._is_stochastic)

    def distributions(self, observations: Sequence[Observation]) -> list[Distribution]:
        saved = self.saved
        views = [
            discrete_view(observation, saved.max_candidates, saved.view, scrolls=saved.scrolls)
            for observation in observations
        ]
        features: list[Any] = [features for features, _ in views]
        if self.saved.view == "flat":
            rows = self._shares(np.stack(features))
        else:
            rows = self._shares({key: np.stack([row[key] for row in features]) for key in features[0]})
        results: list[Distribution] = []
        for (_, candidates), row in zip(views, rows, strict=True):
            shares = row[: len(candidates)] + _EPSILON  # a policy without a mask may prefer candidates that are absent
            results.append((candidates, shares / shares.sum()))
        return results

    def _shares(self, features: Any) -> Floats:
        """Computes the probabilities of all candidates, present or absent, (B, max_candidates)."""
        if not self._is_stochastic:  # all on one candidate; if it is absent, the first present one is chosen: terminate
            numbers, _ = self._policy.predict(features, deterministic=True)
            one_hot: Floats = np.eye(self.saved.max_candidates)[numbers]
            return one_hot
        with torch.no_grad():
            tensors, _ = self._policy.obs_to_tensor(features)
            shares: Floats = self._policy.get_distribution(tensors).distribution.probs.double().cpu().numpy()
        return shares
