"""From an agent to records: what is missing in its cache is generated; all else follows from the cache.

    SessionStore ─► scored_steps.py ─► generate.py ─► ReplyCache ─► StepRecord ─► ResultRow ─► Entry (entries.py)

A run that was stopped goes on where it was. Another reward, other metrics, another extraction or fewer sessions run no
agent: the cached replies are scored again.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import msgspec

from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.provenance import provenance
from replay_sessions.store import SessionStore
from shop_env.candidates import candidate_actions
from shop_env.evaluation.generate import (
    NO_PROBABILITIES,
    format_error,
    generate,
    plan_batches,
)
from shop_env.evaluation.protocol import Agent, ServedAgent
from shop_env.evaluation.reply_cache import ReplyCache
from shop_env.evaluation.scored_steps import AnySplit, EvaluationConfig, ScoredStep, StepKey, sessions_at, steps_at
from shop_env.metrics.likelihood import likelihood_of
from shop_env.metrics.step_record import StepRecord, record_step
from shop_env.observation import ContextConfig, ObservedSession, persona_texts
from shop_env.replies import Extraction
from shop_env.reward.score import RewardConfig

NOT_RUN = "the agent was not run at this step"


class LazyAgent:
    """An agent that is built when it is first needed: one whose replies are all cached never is."""

    def __init__(self, build: Callable[[], Agent]) -> None:
        self._build = build
        self._agent: Agent | None = None

    def get(self) -> Agent:
        if self._agent is None:
            self._agent = self._build()
        return self._agent

    def close(self) -> list[str]:
        """Ends the agent; returns what a ServedAgent reports of its replies."""
        if not isinstance(self._agent, ServedAgent):
            return []
        remarks = self._agent.remarks()
        self._agent.close()
        return remarks


def evaluate(
    agent: Agent,
    store: SessionStore,
    split: AnySplit,
    *,
    context: ContextConfig | None = None,
    reward: RewardConfig | None = None,
    extraction: Extraction = "strict",
    seed: int | None = 0,
    skip_first_action: bool = True,
    max_sessions: int | None = None,
    session_ids: Collection[str] | None = None,
    batch_size: int = 64,
    likelihood: bool = False,
    progress: str | None = None,
    cache: ReplyCache | None = None,
) -> list[StepRecord]:
    """Runs the agent on every scored step of a split; one record per step, in the order of the store.

    A step at which the agent raises is a record with `error`, counted but not scored: a server that is down is no
    wrong answer. Ctrl-C goes through.

    Args:
        context: What of a session is shown; None: all of it.
        reward: How replies are scored; None: the preset `shop_r1`.
        extraction: How an action is read out of a reply (shop_env.replies.parse_reply).
        seed: The run's, from which each step has its own (shop_env.evaluation.generate.step_seed).
        max_sessions: Only the first so many sessions of the split.
        session_ids: Only these sessions.
        batch_size: Steps in one call of the project's own language models (shop_env.evaluation.generate.plan_batches).
        likelihood: Also get the agent's probabilities, where it gives them.
        progress: The label of the progress bar; None: there is none.
        cache: Where replies are written as they come, so that a stopped run need not generate them again; failed steps
            stay failed. None: nowhere.
    """
    config = EvaluationConfig(
        split=split,
        sessions=max_sessions,
        context=context or ContextConfig(),
        reward=reward or "shop_r1",
        extraction=extraction,
        first_action=not skip_first_action,
        batch_size=batch_size,
        likelihood=likelihood,
    )
    keys = config.keys(store, session_ids)
    cache = ReplyCache(None) if cache is None else cache
    fill_cache(
        cache,
        LazyAgent(lambda: agent),
        keys,
        lambda missing: steps_at(store, split, missing, context),
        seed=seed,
        batch_size=batch_size,
        probabilities=likelihood,
        retry_errors=False,
        progress=progress,
    )
    return build_records(cache, config, config.context, store, keys)


def fill_cache(
    cache: ReplyCache,
    agent: LazyAgent,
    keys: Sequence[StepKey],
    read_steps: Callable[[Sequence[StepKey]], Iterable[ScoredStep]],
    *,
    seed: int | None,
    batch_size: int = 64,
    replies: bool = True,
    probabilities: bool = False,
    retry_errors: bool = True,
    fresh: bool = False,
    progress: str | None = None,
) -> int:
    """Runs the agent on the steps that the cache lacks.

    Args:
        read_steps: The steps of these keys with what the agent sees there.
        replies, probabilities: What is wanted of each step.
        retry_errors: Run failed steps again.
        fresh: Run all steps again.

    Returns:
        At how many steps the agent was run.
    """

    def lacks(value: object, error: str | None) -> bool:
        return fresh or (value is None and (retry_errors or error is None))

    missing = {key for key in keys if replies and lacks(cache.reply(key), cache.error(key))}
    unweighted = {
        key for key in keys if probabilities and lacks(cache.probabilities(key), cache.probabilities_error(key))
    }
    if not missing and not unweighted:
        return 0
    built = agent.get()
    if fresh and isinstance(built, ServedAgent):
        built.ask_anew()
    batches = plan_batches(built, keys, batch_size, weighted=probabilities)
    if getattr(built, "replies_in_batches", True):  # an agent in a process of its own may reply one by one
        missing |= cache.interrupted(batches, missing)
    if replies:
        unweighted = {key for key in unweighted if key in missing or cache.reply(key) is not None}
    wanted = missing | unweighted
    cache.begin_run({} if cache.path is None else _run_provenance())
    with progress_bar(progress, len(wanted), "steps") as advance:
        for generated in generate(
            built,
            read_steps([key for key in keys if key in wanted]),
            filter(None, ([key for key in batch if key in wanted] for batch in batches)),
            seed=seed,
            replies=missing,
            probabilities=unweighted,
        ):
            if generated.reply is not None:
                cache.add(generated.step.key, generated.reply)
            if generated.probabilities is not None:
                cache.add_probabilities(generated.step.key, generated.probabilities)
            advance(1)
    return len(wanted)


def _run_provenance() -> dict[str, Any]:
    """What of a run's provenance distinguishes its replies from another run's."""
    described = provenance({})
    return {name: described[name] for name in ("time", "commit", "dirty", "python", "packages", "machine")}


def build_records(
    cache: ReplyCache, config: EvaluationConfig, context: ContextConfig, store: SessionStore, keys: Sequence[StepKey]
) -> list[StepRecord]:
    """The records of these steps, in their order: what the cached replies earn under this configuration.

    Args:
        context: What the agent was shown.
    """
    reward, records = config.reward_config, []
    # An agent that gives probabilities at some steps must give them at all, or it would choose what it is judged by.
    weighted = config.likelihood and any(cache.probabilities(key) or cache.probabilities_error(key) for key in keys)
    personas = persona_texts(store, context) if weighted else None
    for session, indices in sessions_at(store, config.split, keys):
        observed = ObservedSession(session, context, personas) if weighted else None
        for index in indices:
            key = (session.session_id, index)
            reply, error = cache.reply(key), cache.error(key)
            if reply is None and error is None:
                error = NOT_RUN
            record = record_step(session, index, reply, reward, extraction=config.extraction, error=error)
            if observed is not None and record.error is None:
                record = _with_likelihood(record, ScoredStep(session, index, observed.at(index)), cache)
            records.append(record)
    return records


def _with_likelihood(record: StepRecord, step: ScoredStep, cache: ReplyCache) -> StepRecord:
    """The record with the agent's probability of the logged action, its rank, and the probability of terminating.

    It becomes an error where there are no probabilities, or where they are no distribution.
    """
    error = cache.probabilities_error(step.key) or NO_PROBABILITIES
    probabilities = cache.probabilities(step.key)
    if probabilities is not None:
        try:
            likelihood = likelihood_of(step.logged, probabilities, candidate_actions(step.observation))
            return msgspec.structs.replace(record, **likelihood._asdict())
        except Exception as failure:
            error = format_error(failure)
    nothing = dict.fromkeys(("reply", "predicted", "predicted_rationale", "problem", "reward"))
    return msgspec.structs.replace(record, **nothing, error=error)
