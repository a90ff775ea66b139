"""Prints the messages of a phase's policy at the first scored train step; needs neither model nor network.

shop-r1 train --preset shop_r1_3b --store stores/mine --show-prompt
shop-r1 train --preset shop_r1_3b --store stores/mine --only shop_r1 --show-prompt      the prompt of its phase of GRPO
"""

from collections.abc import Iterator, Sequence

from agents.llm_grpo.config import TrainConfig
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.store import SessionStore
from shop_env.evaluation.scored_steps import EvaluationConfig, steps_at
from shop_env.prompts import render_prompt


def show_prompt(config: TrainConfig, only: Sequence[str]) -> Iterator[str]:
    """Yields the complete messages, each under its role.

    Args:
        only: Names of phases, of which the first is shown; empty means the run's first phase.
    """
    store = SessionStore.open(config.store)
    name = next(iter((*only, *config.phases)))
    phase = config.phases[name]
    if config.is_pointer(name):
        raise BadConfig(f"phases.{name} is a pointer, which reads the page's elements and no prompt.")
    for step in steps_at(store, "train", EvaluationConfig(split="train").keys(store)[:1], phase.context):
        for message in render_prompt(step.observation, config.prompt_of(phase, store)):
            yield f"=== {message['role']}\n{message['content']}\n"
