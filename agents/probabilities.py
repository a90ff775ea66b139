"""How likely an agent held what was logged: asked apart from the replies, of agents that give probabilities.

    agents/scored_steps.py ─► ask_probabilities ─► with_probabilities ─► the same records with likelihoods

Apart from `evaluate`, since for a language model it costs many times as much as one reply per step.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from agents.asking import ask_each, error_in_words, step_seeds
from agents.protocol import ProbabilityAgent
from agents.scored_steps import AnySplit, ScoredStep, StepKey, steps_at
from replay_sessions.errors import AgentFailed
from replay_sessions.progress_bar import progress_bar
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.candidates import candidate_actions
from shop_env.context import ContextConfig
from shop_env.metrics import StepRecord, likelihood_of

__all__ = ["ask_probabilities", "with_likelihood", "with_probabilities"]

Probabilities = Mapping[Action, float]


def ask_probabilities(
    agent: ProbabilityAgent, steps: Iterable[ScoredStep], *, seed: int | None = 0, batch_size: int = 64
) -> Iterator[tuple[ScoredStep, Probabilities | Exception]]:
    """For each step what the agent holds likely, or what it raised; nothing where the agent gives no probabilities.

    One that gives them at some steps gives them at all, or it would choose what it is judged by.

    Args:
        seed: The run's; a step's own is the one its reply was asked with.
        batch_size: Steps in one call.
    """
    remaining, gave_some = iter(steps), False
    while batch := list(islice(remaining, batch_size)):
        observations = [step.observation for step in batch]
        found = ask_each(agent.probabilities, observations, step_seeds(seed, batch), Mapping)
        if found is None and not gave_some:
            return
        gave_some = True
        none_here = AgentFailed("the agent gave probabilities at other steps, and none here")
        yield from zip(batch, [none_here] * len(batch) if found is None else found, strict=True)


def with_probabilities(record: StepRecord, step: ScoredStep, found: Probabilities | str) -> StepRecord:
    """The record with the agent's probability of the logged action, its rank, and the probability of leaving.

    It becomes an error where there are none (a str: what the agent raised, in words) or where they are no distribution.
    """
    try:
        if not isinstance(found, str):
            likelihood = likelihood_of(step.logged, found, candidate_actions(step.observation))
            return msgspec.structs.replace(record, **likelihood._asdict())
    except Exception as error:
        found = error_in_words(error)
    nothing = {"reply": None, "predicted": None, "predicted_rationale": None, "problem": None, "reward": None}
    return msgspec.structs.replace(record, **nothing, error=found)


def with_likelihood(
    agent: ProbabilityAgent,
    store: SessionStore,
    split: AnySplit,
    records: Sequence[StepRecord],
    *,
    context: ContextConfig | None = None,
    seed: int | None = 0,
    batch_size: int = 64,
    progress: str | None = None,
) -> list[StepRecord]:
    """The records of `evaluate` with what the agent holds likely (`with_probabilities`); unchanged if it gives nothing.

    Records of failed replies stay as they are.

    Args:
        records: What `evaluate` returned for the same split and context.
        progress: What to call the run where it tells how far it is; None: it does not.
    """
    found: dict[StepKey, StepRecord] = {(record.session_id, record.step_index): record for record in records}
    asked = [key for key, record in found.items() if record.error is None]
    with progress_bar(progress, len(asked), "steps") as advance:
        steps = steps_at(store, split, asked, context)
        for step, answer in ask_probabilities(agent, steps, seed=seed, batch_size=batch_size):
            known = error_in_words(answer) if isinstance(answer, Exception) else answer
            found[step.key] = with_probabilities(found[step.key], step, known)
            advance(1)
    return list(found.values())
