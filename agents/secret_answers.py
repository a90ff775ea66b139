"""Steps whose logged actions are random, drawn anew for each check.

An agent that predicts many of them has read them: from the store behind the train split that it gets, or from the
evaluation that calls it.
"""

import contextlib
import tempfile
from pathlib import Path
from random import Random

from agents.registry import learns_from_store, make_agent
from agents.watched_calls import WatchedCalls
from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.schema import Click, Session, Step, reply_action
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import SplitPlan
from shop_env.evaluation.generate import AgentSpec, generate_replies
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.scored_steps import scored_steps
from shop_env.replies import Reply, parse_reply

SESSIONS, STEPS, ELEMENTS = 12, 4, 40


def count_known_answers(agent: Agent, spec: object, calls: WatchedCalls) -> tuple[int, int]:
    """How many of the random actions the agent predicts, and of how many.

    Args:
        spec: What the agent was made from; one that learns from a store is made anew for that of the random steps.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = _write_store(Path(folder) / "secrets")
        if isinstance(spec, AgentSpec) and learns_from_store(spec):
            with contextlib.suppress(ShopR1Error):  # it takes stores of another kind
                agent = calls.run(lambda: make_agent(spec, store=store), replies=100)
        steps = list(scored_steps(store, "test"))
        answers = calls.run(lambda: list(generate_replies(agent, steps, seed=0)), len(steps))
    parsed = [(step, parse_reply(answer)) for step, answer in answers if isinstance(answer, str)]
    matches = [
        isinstance(reply, Reply) and reply_action(reply.action) == reply_action(step.logged) for step, reply in parsed
    ]
    return sum(matches), len(steps)


def _write_store(path: Path) -> SessionStore:
    draw = Random()
    page = "".join(f'<a name="item.{number}">item</a>' for number in range(ELEMENTS))
    with StoreWriter(path, source="secrets", splits=SplitPlan(by="official")) as writer:
        for number in range(SESSIONS):
            items = draw.sample(range(ELEMENTS), STEPS)
            session = Session(
                session_id=f"secret {number}",
                user_id=f"secret {number}",
                steps=tuple(Step(page=page, action=Click(name=f"item.{item}")) for item in items),
                source="secrets",
                official_split="test" if number % 2 else "train",
            )
            writer.write(session)
    return SessionStore.open(path)
