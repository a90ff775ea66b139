"""Objectives of training on groups of replies (docs/objectives.md lists them).

A phase selects an objective by `method`: a name of OBJECTIVES, or your own as module:CLASS or FILE.py:CLASS. It is a
subclass of train.grpo.trainer.GroupTrainer and reads the configuration [grpo]. SFT on whole sessions is train/sft.py.
"""

from collections.abc import Mapping
from typing import Any

from replay_sessions.foundation.config_errors import convert_fields
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import error_with_line, load_own
from replay_sessions.foundation.records import Config

CANDIDATE_LIKELIHOOD = "candidate_likelihood"  # reads the configuration [sft] (candidate_likelihood.py)
EXPECTED_REWARD = "expected_reward"
RESTRICTED = CANDIDATE_LIKELIHOOD, EXPECTED_REWARD  # their policies choose among a page's actions (train/candidates.py)
OBJECTIVES = {
    "grpo": "train.objectives.grpo:GrpoTrainer",
    "grpo_with_logged": "train.objectives.grpo_with_logged:GrpoWithLogged",
    "weighted_sft": "train.objectives.weighted_sft:WeightedSft",
    "dpo": "train.objectives.dpo:Dpo",
    EXPECTED_REWARD: "train.objectives.expected_reward:ExpectedReward",
}
LIKELIHOOD = "train.objectives.likelihood:Likelihood"  # GRPO with the reward log_likelihood


def load_objective(method: str, reward_kind: str = "") -> Any:
    """Loads the class of an objective.

    Args:
        method: The name of the objective, or its module:CLASS or FILE.py:CLASS.
        reward_kind: The kind of reward of the phase.

    Raises:
        BadConfig: The objective cannot be loaded; the message names the file and line of its error.
    """
    is_likelihood = method == "grpo" and reward_kind == "log_likelihood"
    target = LIKELIHOOD if is_likelihood else OBJECTIVES.get(method, method)
    try:
        objective = load_own(target)
    except Exception as error:
        raise BadConfig(f"method {method!r} cannot be loaded: {error_with_line(error)}") from error
    if not isinstance(objective, type) or getattr(objective, "__abstractmethods__", True):
        raise BadConfig(
            f"method {method!r} is no objective: give a subclass of train.grpo.trainer.GroupTrainer with a method "
            "loss(chunk)."
        )
    return objective


def read_options(objective: Any, options: Mapping[str, Any], phase: str) -> dict[str, Any]:
    """Returns the argument `options` of an objective, by name; empty if the phase gives none.

    Args:
        objective: The class of the objective.
        options: The keys and values of the phase.
        phase: The name of the phase.

    Raises:
        BadConfig: The objective has no such option, or a value has the wrong type.
    """
    kind = getattr(objective, "Options", Config)
    return {"options": convert_fields(options, kind, f"phases.{phase}.options")} if options else {}
