"""The embedded default: two seeded shops and shoppers with personas; they need no download.

    catalogue ─► shop (which page follows an action) ─► pages
    shopper (how likely each action is, and why) ─► visits ─► generate_sessions ─► Session

`small` is what a tiny model can learn; `realistic/` is a shop with fixed prices, search, and shoppers who compare. The
policy of the shoppers is known in both, so the best achievable accuracy is too: see `action_probabilities`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from replay_sessions.demo_shop.pages import PageSize
from replay_sessions.demo_shop.realistic import CONTROL, ShopVariant
from replay_sessions.demo_shop.shop import DemoShop
from replay_sessions.demo_shop.visits import SESSIONS_PER_USER, ShopVisit, action_probabilities, rationale_for
from replay_sessions.schema import Session, Step, reply_action

__all__ = [
    "SESSIONS_PER_USER",
    "SOURCE",
    "DemoShop",
    "ShopVariant",
    "ShopVisit",
    "action_probabilities",
    "generate_sessions",
    "rationale_for",
]

SOURCE = "demo_shop"


def generate_sessions(
    count: int, seed: int, page_size: PageSize = "small", variant: ShopVariant = CONTROL
) -> Iterator[Session]:
    """`count` sessions of a demo shop's shoppers, four to a user; session i depends on nothing but i and these."""
    for index in range(count):
        yield _session(index, seed, page_size, variant)


def _session(index: int, seed: int, page_size: PageSize, variant: ShopVariant) -> Session:
    visit = ShopVisit(seed, index, page_size, variant)
    history: list[dict[str, Any]] = []
    steps: list[Step] = []
    while visit.shop.outcome is None:
        observation = {
            "page": visit.shop.page,
            "history": history,
            "persona": visit.persona.text,
            "goal": visit.goal,
        }
        action = visit.choose(action_probabilities(observation))
        steps.append(Step(page=visit.shop.page, action=action, rationale=rationale_for(observation, action)))
        history.append({"action": msgspec.json.encode(reply_action(action))})
        visit.shop.respond(action)
    return Session(
        session_id=f"demo-{seed}-{index:06}",
        user_id=visit.user_id,
        steps=tuple(steps),
        source=SOURCE,
        persona=visit.persona,
        goal=visit.goal,
    )
