"""Runs an agent over a split and records what it answered: the one way from an agent to figures.

SessionStore ─► agents/scored_steps.py ─► agents/asking.py ─► reply ─► reward ─► StepRecord ─► agents/results.py
"""

from collections.abc import Collection, Iterable, Sequence

import agents
from agents.asking import Answer, ask_all, error_in_words, steps_at_once
from agents.kept_replies import KeptReplies
from agents.protocol import Agent
from agents.scored_steps import AnySplit, StepKey, scored_keys, sessions_at, steps_at
from replay_sessions.progress_bar import progress_bar
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore
from shop_env.context import ContextConfig
from shop_env.metrics.records import StepRecord, record_step
from shop_env.replies import Extraction
from shop_env.reward.presets import reward_preset
from shop_env.reward.score import RewardConfig

if getattr(agents, "__project__", None) != "shop-r1":
    raise ImportError(
        f"The package 'agents' that was loaded ({agents.__file__}) is not shop-r1's. The distribution 'openai-agents' "
        "installs a package of the same name: remove it from this environment, or use an environment of its own."
    )

__all__ = ["evaluate", "record_answer", "sorted_as"]


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
    progress: str | None = None,
    kept: KeptReplies | None = None,
) -> list[StepRecord]:
    """Asks the agent about every scored step of a split; one record per step, in the order of the store.

    A step at which the agent raises is a record with `error`, counted but not scored: a server that is down is no
    wrong answer. Ctrl-C goes through.

    Args:
        context: What of a session is shown; None: all of it.
        reward: How replies are scored; None: the preset `shop_r1`.
        extraction: How an action is read out of a reply (shop_env.replies.parse_reply).
        seed: The run's, from which each step has its own (agents.asking.step_seed).
        max_sessions: Only the first so many sessions of the split.
        session_ids: Only these sessions.
        batch_size: Steps in one `act_batch`.
        progress: What to call the run where it tells how far it is; None: it does not.
        kept: Where answers are kept as they come, so that they need not be asked for again. What is missing of a batch
            is asked with all of it: every batch is that of a run which was never stopped, to the last rounding.
    """
    reward = reward_preset("shop_r1") if reward is None else reward
    keys = scored_keys(
        store, split, skip_first_action=skip_first_action, max_sessions=max_sessions, session_ids=session_ids
    )
    known = {} if kept is None else _whole_batches(kept, keys, steps_at_once(agent, batch_size))
    unknown = [key for key in keys if key not in known]
    records = [
        record_step(session, index, reply, reward, error=error, extraction=extraction)
        for session, indices in sessions_at(store, split, known)
        for index in indices
        for reply, error in [known[session.session_id, index]]
    ]
    if kept is not None and unknown:
        kept.begin_run({})
    with progress_bar(progress, len(keys), "steps") as advance:
        advance(len(known))
        for step, answer in ask_all(agent, steps_at(store, split, unknown, context), seed=seed, batch_size=batch_size):
            if kept is not None:
                kept.keep(step.key, answer)
            records.append(record_answer(step.session, step.step_index, answer, reward, extraction))
            advance(1)
    return sorted_as(keys, records)


def _whole_batches(
    kept: KeptReplies, keys: Sequence[StepKey], batch_size: int
) -> dict[StepKey, tuple[str | None, str | None]]:
    """Reply and error of the kept steps, without those of a batch that was not answered whole."""
    known: dict[StepKey, tuple[str | None, str | None]] = {}
    for first in range(0, len(keys), batch_size):
        batch = {key: (kept.reply(key), kept.error(key)) for key in keys[first : first + batch_size]}
        if (None, None) not in batch.values():
            known |= batch
    return known


def record_answer(
    session: Session, step_index: int, answer: Answer, reward: RewardConfig, extraction: Extraction
) -> StepRecord:
    """What is known of a step once it is answered."""
    if isinstance(answer, Exception):
        return record_step(session, step_index, None, reward, error=error_in_words(answer), extraction=extraction)
    return record_step(session, step_index, answer, reward, extraction=extraction)


def sorted_as(keys: Sequence[StepKey], records: Iterable[StepRecord]) -> list[StepRecord]:
    """The records in this order: replies may come in any."""
    found = {(record.session_id, record.step_index): record for record in records}
    return [found[key] for key in keys]
