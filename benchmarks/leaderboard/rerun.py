"""Runs the agents of a log again at some steps: are its replies their own?

A log may come from a stranger. Code, files and addresses that it names are used only where the caller names them too.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agents.agent_code import code_digest, deciding_arguments
from agents.agent_process import build_agent
from agents.child_process import Limits
from agents.registry import format_spec, is_own, parse_spec
from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.store import SessionStore
from shop_env.evaluation.entries import ORDER_CHECK_BATCH, run_again
from shop_env.evaluation.evaluate import LazyAgent
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.log import Entry
from shop_env.evaluation.scored_steps import EvaluationConfig, StepKey, steps_at


class Rerun(msgspec.Struct, frozen=True, kw_only=True):
    """How agents are run again.

    Attributes:
        steps: At how many steps each; 0: not at all.
        trust: Agents as in --agents that may be run though they are somebody else's, or have texts as arguments.
        limits: Of the processes of somebody else's agents.
    """

    steps: int = 0
    trust: tuple[str, ...] = ()
    limits: Limits = Limits()

    def may_run(self, spec: AgentSpec) -> bool:
        """A stranger's file may name any function, file or address, and an argument within an argument too."""
        plain = bool | int | float | None
        harmless = is_own(spec) and all(
            isinstance(value, plain) or name == "decode"  # one of a few words, or an error
            for name, value in spec.arguments.items()
        )
        return harmless or any(
            (spec.target, spec.arguments) == (trusted.target, trusted.arguments)
            for trusted in map(parse_spec, self.trust)
        )


def check_rerun(
    folder: Path, entry: Entry, config: EvaluationConfig, store: SessionStore, rerun: Rerun
) -> Iterator[str]:
    """Runs the agent again on some of the steps, drawn so that nobody can know them beforehand.

    Somebody else's code runs in a process of its own, and only if it is the code that gave the replies.
    """
    spec, limits = entry.spec.within(folder), msgspec.structs.replace(rerun.limits, hidden=(store.path, folder))
    if not rerun.may_run(spec):
        yield f"not run again: to run what this folder names, add --trust '{format_spec(spec)}'"
        return
    try:
        decides = {"code": code_digest(spec), "resolved": deciding_arguments(spec)}
    except ShopR1Error as error:
        yield f"not run again: {error}"
        return
    if decides != {name: entry.identity.get(name) for name in decides}:
        yield (
            "code: the agent's source or checkpoint is not the one that gave the replies, or a file that its arguments "
            "name, so it was not run again"
        )
        return
    lazy = LazyAgent(lambda: build_agent(spec, store, limits))
    with entry.cache(folder) as cache:
        replied = [key for key in config.keys(store) if cache.reply(key) is not None]
        drawn = set(random.SystemRandom().sample(replied, min(rerun.steps, len(replied))))
        steps = list(steps_at(store, config.split, [key for key in replied if key in drawn], entry.context))
        size = 0
        if not is_own(spec):  # the check of the order once more
            places = {key[0]: random.random() for key in drawn}
            steps.sort(key=lambda step: places[step.key[0]])
            size = ORDER_CHECK_BATCH
        for generated in run_again(lazy, steps, cache, config, size=size):
            key, reply = generated.step.key, generated.reply
            if reply != (cached := cache.reply(key)):
                yield f"{format_key(key)}: run again, the agent replies {reply!r}, and not {cached!r}"
            else:
                yield f"{format_key(key)}: run again, the agent gives other probabilities"


def format_key(key: StepKey) -> str:
    """A step in words."""
    return f"step {key[1]} of session {key[0]!r}"
