"""Steps whose answers nobody can know: their logged actions are drawn by lot, anew each time.

An agent that gives many of them all the same has read them: from the store behind the train split that it is given, or
from those who ask it.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

from agents.asking import ask_all
from agents.protocol import Agent
from agents.registry import AgentSpec, made_for_a_store, make_agent
from agents.scored_steps import ScoredStep, scored_steps
from agents.watched_calls import WatchedCalls
from replay_sessions.errors import ShopR1Error
from replay_sessions.schema import Click, Session, Split, Step, reply_action
from replay_sessions.splits import SplitPlan
from replay_sessions.store import SessionStore, StoreWriter
from shop_env.replies import Reply, parse_reply

__all__ = ["known_by_lot"]

SESSIONS, STEPS, ELEMENTS = 12, 4, 40


def known_by_lot(agent: Agent, spec: object, calls: WatchedCalls) -> tuple[int, int]:
    """How many of the actions drawn by lot the agent gives, and of how many.

    Args:
        spec: What the agent was made from; one that is made for a store is made anew for that of the drawn steps.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "secrets"
        with StoreWriter(path, source="secrets", splits=SplitPlan(by="official")) as writer:
            for session in _sessions():
                writer.write(session)
        store = SessionStore.open(path)
        if isinstance(spec, AgentSpec) and made_for_a_store(spec):
            with contextlib.suppress(ShopR1Error):  # made for stores of its own kind
                agent = calls.run(lambda: make_agent(spec, store=store), answers=100)
        steps = list(scored_steps(store, "test"))
        answers = calls.run(lambda: list(ask_all(agent, steps, seed=0)), len(steps))
    return sum(_is_logged(step, answer) for step, answer in answers), len(steps)


def _sessions() -> Iterator[Session]:
    draw = Random()
    page = "".join(f'<a name="item.{number}">item</a>' for number in range(ELEMENTS))
    for number in range(SESSIONS):
        split: Split = "test" if number % 2 else "train"
        yield Session(
            session_id=f"secret {number}",
            user_id=f"secret {number}",
            steps=tuple(
                Step(page=page, action=Click(name=f"item.{one}")) for one in draw.sample(range(ELEMENTS), STEPS)
            ),
            source="secrets",
            official_split=split,
        )


def _is_logged(step: ScoredStep, answer: object) -> bool:
    parsed = parse_reply(answer) if isinstance(answer, str) else None
    return isinstance(parsed, Reply) and reply_action(parsed.action) == reply_action(step.logged)
