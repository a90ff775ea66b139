"""The embedded default: a seeded shop and shoppers with personas; it needs no download.

    catalogue ─► shop (which page follows an action) ─► pages
    shopper (how likely each action is, and why) ─► generate_sessions ─► Session

The policy of the shoppers is known, so the best achievable accuracy is too: see `action_probabilities`.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

from replay_sessions.demo_shop.pages import PageSize
from replay_sessions.demo_shop.shop import DemoShop
from replay_sessions.demo_shop.shopper import (
    action_probabilities,
    draw_goal,
    draw_shopper,
    rationale_for,
)
from replay_sessions.schema import Session, Step, reply_action

__all__ = ["SOURCE", "DemoShop", "action_probabilities", "generate_sessions", "rationale_for"]

SOURCE = "demo_shop"
SESSIONS_PER_USER = 4


def generate_sessions(count: int, seed: int, page_size: PageSize = "small") -> Iterator[Session]:
    """`count` sessions of the demo shop's shoppers, four to a user; session i depends on `seed` and i alone."""
    for index in range(count):
        yield _session(index, seed, page_size)


def _session(index: int, seed: int, page_size: PageSize) -> Session:
    user = index // SESSIONS_PER_USER
    persona = draw_shopper(Random(f"{seed} user {user}")).persona()
    random = Random(f"{seed} session {index}")
    goal = draw_goal(random)
    shop = DemoShop(random, goal.product, page_size)
    history: list[dict[str, Any]] = []
    steps: list[Step] = []
    while shop.outcome is None:
        observation = {"page": shop.page, "history": history, "persona": persona.text, "goal": goal.text()}
        probabilities = action_probabilities(observation)
        action = random.choices(list(probabilities), list(probabilities.values()))[0]
        steps.append(Step(page=shop.page, action=action, rationale=rationale_for(observation, action)))
        history.append({"action": msgspec.json.encode(reply_action(action))})
        shop.respond(action)
    return Session(
        session_id=f"demo-{seed}-{index:06}",
        user_id=f"shopper-{seed}-{user:05}",
        steps=tuple(steps),
        source=SOURCE,
        persona=persona,
        goal=goal.text(),
    )
