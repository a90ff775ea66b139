"""How likely an agent held what was logged: the second pass over a split, for agents that give probabilities.

    records of agents.evaluate ─► probabilities of each page's actions ─► the same records with likelihoods

Apart from `evaluate`, since for a language model it costs many times as much as one reply per step.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from agents.evaluate import ScoredStep, error_in_words, progress_bar, scored_steps
from agents.protocol import ProbabilityAgent
from replay_sessions.schema import Action, Split
from replay_sessions.store import SessionStore
from shop_env.candidates import candidate_actions
from shop_env.context import ContextConfig
from shop_env.metrics import StepRecord, likelihood_of

__all__ = ["with_likelihood"]

Probabilities = Mapping[Action, float]


def with_likelihood(
    agent: ProbabilityAgent,
    store: SessionStore,
    split: Split | Literal["all"],
    records: Sequence[StepRecord],
    *,
    context: ContextConfig | None = None,
    batch_size: int = 64,
    progress: str | None = None,
) -> list[StepRecord]:
    """The records with the agent's probability of the logged action, its rank, and the probability of leaving.

    Records of failed replies stay as they are; a step at which the probabilities fail becomes one of them. Records are
    returned unchanged where the agent has no probabilities.

    Args:
        records: What `evaluate` returned for the same split and context.
        progress: What to call the run on the progress bar; None: no bar.
    """
    found = {(record.session_id, record.step_index): record for record in records}
    asked = {key for key, record in found.items() if record.error is None}
    steps = scored_steps(store, split, context=context, skip_first_action=False, session_ids={key[0] for key in found})
    remaining = (step for step in steps if _key(step) in asked)
    done: set[str] = set()
    with progress_bar(progress) as bar:
        task = bar.add_task(progress or "", total=len({session_id for session_id, _ in asked}))
        while batch := list(itertools.islice(remaining, batch_size)):
            for step, probabilities in zip(batch, _probabilities(agent, batch), strict=True):
                if probabilities is None:
                    return list(records)
                found[_key(step)] = _updated(found[_key(step)], step, probabilities)
            done.update(step.session.session_id for step in batch)
            bar.update(task, completed=len(done))
    return list(found.values())


def _key(step: ScoredStep) -> tuple[str, int]:
    return step.session.session_id, step.step_index


def _probabilities(agent: ProbabilityAgent, batch: Sequence[ScoredStep]) -> Iterator[Probabilities | Exception | None]:
    """For each step; where the batch fails as a whole each step is asked alone, so one bad page costs one step."""
    try:
        found = agent.probabilities([step.observation for step in batch])
        yield from itertools.repeat(None, len(batch)) if found is None else found
    except Exception as error:
        if len(batch) == 1:
            yield error
        else:
            for step in batch:
                yield from _probabilities(agent, [step])


def _updated(record: StepRecord, step: ScoredStep, probabilities: Probabilities | Exception) -> StepRecord:
    try:
        if isinstance(probabilities, Exception):
            raise probabilities
        found = likelihood_of(step.logged, probabilities, candidate_actions(step.observation))
    except Exception as error:
        nothing = {"reply": None, "predicted": None, "predicted_rationale": None, "problem": None, "reward": None}
        return msgspec.structs.replace(record, **nothing, error=error_in_words(error))
    return msgspec.structs.replace(record, **found._asdict())
