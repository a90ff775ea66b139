"""An evaluation dealt out over the ranks of a run: each asks about its sessions, and all have all records.

A step's seed is its own (agents/asking.py), so that the records are those of one process that asks about all of it.
"""

from typing import Any

from agents.evaluate import evaluate, sorted_as
from agents.protocol import Agent
from agents.scored_steps import scored_keys
from replay_sessions.schema import Split
from replay_sessions.store import SessionStore
from shop_env.metrics import StepRecord
from train.ranks import Ranks

__all__ = ["evaluate_shared"]


def evaluate_shared(
    ranks: Ranks, agent: Agent, store: SessionStore, split: Split, *, max_sessions: int | None, **options: Any
) -> list[StepRecord]:
    """The records of `evaluate`, with its options; every rank asks for them."""
    if ranks.alone:
        return evaluate(agent, store, split, max_sessions=max_sessions, **options)
    keys = scored_keys(store, split, max_sessions=max_sessions)
    sessions = list(dict.fromkeys(session_id for session_id, _ in keys))
    own = ranks.share(sessions)
    records = evaluate(agent, store, split, session_ids=own, **options) if own else []
    ranks.meet()  # here, and not in an exchange, one waits for as long as it takes
    return sorted_as(keys, (record for of_rank in ranks.gather(records) for record in of_rank))
