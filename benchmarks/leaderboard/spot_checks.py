"""Runs the agents of a log again at some steps, to check that the replies are their own.

A log may come from a stranger. Code, files and addresses that it names are used only if the caller names them too.
"""

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from agents.agent_identity import code_identity, recorded_code
from agents.child_process import build_agent
from agents.registry import format_spec, is_trusted, names_nothing
from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import LazyAgent
from shop_env.evaluation.results_file import Entry, read_steps
from shop_env.evaluation.scored_steps import EvaluationConfig, steps_at
from shop_env.evaluation.steps_file import StepLine, StepsFile
from shop_env.evaluation.waves import AgentSpec, generate, plan_batches


def may_run(spec: AgentSpec, trust: Sequence[str]) -> bool:
    """Returns whether the caller trusts an agent, or the agent names no code, file or address."""
    return names_nothing(spec) or is_trusted(spec, trust)


def check_rerun(
    folder: Path, entry: Entry, config: EvaluationConfig, store: SessionStore, *, count: int, trust: Sequence[str]
) -> Iterator[str]:
    """Runs an agent again at `count` steps, drawn at random on each call, and yields each difference in words."""
    spec = entry.spec.within(folder)
    if not may_run(spec, trust):
        yield f"not run again: to run what this folder names, add --trust '{format_spec(spec)}'"
        return
    try:
        if code_identity(spec) != recorded_code(entry.identity):
            yield "not run again: the agent's source, its checkpoint or a file that it reads is another one now"
            return
        lazy = LazyAgent(lambda: build_agent(spec, store, entry.context))
        agent = lazy.get()
    except ShopR1Error as error:
        yield f"not run again: {error}"
        return
    lines = read_steps(folder, entry)
    replied = [key for key in config.keys(store) if key in lines and lines[key].reply is not None]
    drawn = set(random.SystemRandom().sample(replied, min(count, len(replied))))
    keys = [key for key in replied if key in drawn]
    weighted = any(lines[key].probabilities is not None for key in keys)
    batches = plan_batches(agent, keys, config.batch_size)
    again = StepsFile()
    steps = steps_at(store, config.split, keys, entry.context)
    for step, answer in generate(agent, steps, batches, seed=config.seed, probabilities=weighted):
        again.add(step, answer)
        line, new = lines[step.key], again.lines[step.key]
        place = f"step {step.step_index} of session {step.session.session_id!r}: run again, the agent"
        if line.reply != new.reply:
            yield f"{place} replies {new.reply or new.error!r}, and not {line.reply!r}"
        elif not _are_close(line, new):
            yield f"{place} gives other probabilities"
    lazy.close()


def _are_close(line: StepLine, again: StepLine) -> bool:
    """Returns whether the probabilities of two lines are equal up to rounding."""
    first, second = dict(line.probabilities or ()), dict(again.probabilities or ())
    return first.keys() == second.keys() and all(
        math.isclose(first[action], second[action], rel_tol=1e-4, abs_tol=1e-6) for action in first
    )
