"""A shop to walk through, made of a log's pages: an action leads where it led the people of the train split.

    train sessions ─► LinkGraph ─► LoggedShop, an env ─► shop_env.evaluation.free_run ─► simulated sessions

Pages are rendered from events (replay_sessions/importers/events), so the same place has the same page in all sessions,
but for what is in the cart. An action that nobody did on a page leads where it led from other pages; one that nobody
did anywhere leaves the page as it is. A visit begins where a person's did, and ends in terminate, in what was
somebody's purchase, or after `MOST_REPLIES`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import gymnasium

from replay_sessions.elements import find_elements
from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.importers.sessions import PURCHASE
from replay_sessions.schema import Action, Click, Session, Step, Terminate, reply_action
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import SplitPlan
from shop_env.evaluation.evaluate import LazyAgent
from shop_env.evaluation.free_run import play_side_by_side, play_visit
from shop_env.observation import Observation, observe
from shop_env.replies import MalformedReply, action_json, parse_reply

MOST_REPLIES = 100
SIDE_BY_SIDE = 64


@lru_cache(4096)
def page_kind(page: str) -> frozenset[str]:
    """Which elements a page is made of: the first parts of their names."""
    return frozenset(element.name.partition(".")[0] for element in find_elements(page))


def is_purchase(action: Action) -> bool:
    """Whether the log calls it one."""
    return isinstance(action, Click) and action.click_type == PURCHASE


class LinkGraph:
    """Where the actions of sessions led.

    Attributes:
        starts: The first page of each session.
    """

    def __init__(self, sessions: Iterable[Session]) -> None:
        self.starts: list[str] = []
        self._pages: dict[str, str] = {}  # each once, since they recur in all sessions
        self._purchases: dict[str, Action] = {}
        self._next: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)  # "" for any page
        for session in sessions:
            pages = [self._pages.setdefault(step.page, step.page) for step in session.steps]
            self.starts.append(pages[0])
            for step, page, after in zip(session.steps, pages, pages[1:], strict=False):
                for place in (page, ""):
                    self._next[place, action_json(reply_action(step.action))][after] = None
            if is_purchase(last := session.steps[-1].action):
                self._purchases[action_json(reply_action(last))] = last

    def logged(self, action: Action) -> Action:
        """The action as the log has it, purchases marked."""
        return self._purchases.get(action_json(reply_action(action)), action)

    def follow(self, page: str, action: Action, draw: Random) -> str:
        """The page that follows: one of those that did."""
        name = action_json(reply_action(action))
        pages = self._next.get((page, name)) or self._next.get(("", name)) or {page: None}
        return draw.choice(list(pages))


class LoggedShop(gymnasium.Env[Observation, str]):
    """One visit.

    Attributes:
        steps: Those that were done.
    """

    def __init__(self, graph: LinkGraph) -> None:
        self._graph = graph

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins the visit `options={"session_id": …}`, whose id decides all draws of the shop."""
        self._id: str = (options or {})["session_id"]
        self._draw = Random(self._id)
        self.steps: tuple[Step, ...] = ()
        self._page, self._replies = self._draw.choice(self._graph.starts), 0
        return self._observation(), {"session_id": self._id, "user_id": self._id}

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Does the action of a reply; one that cannot be read leaves everything as it is."""
        self._replies += 1
        outcome, reply = None, parse_reply(action)
        if not isinstance(reply, MalformedReply):
            done = self._graph.logged(reply.action)
            self.steps += (Step(page=self._page, action=done),)
            self._page = self._graph.follow(self._page, done, self._draw)
            outcome = "purchase" if is_purchase(done) else "terminate" if isinstance(done, Terminate) else None
        is_over = outcome is not None
        info = {"outcome": outcome} if is_over else {}
        return self._observation(), 0.0, is_over, not is_over and self._replies == MOST_REPLIES, info

    def session(self, *now: Step) -> Session:
        """The visit so far."""
        return Session(session_id=self._id, user_id=self._id, steps=(*self.steps, *now), source="simulated")

    def _observation(self) -> Observation:
        return observe(self.session(Step(page=self._page, action=Terminate())), len(self.steps))


def simulate(agent: LazyAgent, graph: LinkGraph, visits: int, path: Path, seed: int) -> list[Session]:
    """An agent's visits, which are written to a store; those of a store that is there are not played again.

    Raises:
        AgentFailed: A visit has no end, for the agent failed.
    """
    if not path.exists():
        shops = [LoggedShop(graph) for _ in range(visits)]
        played = (play_visit(shop, f"{path.name}-{number}", seed) for number, shop in enumerate(shops))
        with progress_bar(path.name, visits, "visits") as advance:
            for visit in play_side_by_side(agent.get(), played, SIDE_BY_SIDE):
                if visit.error:
                    raise AgentFailed(f"visit {visit.session_id}: {visit.error}")
                advance(1)
        with StoreWriter(path, source="simulated", splits=SplitPlan(validation=0, test=0)) as writer:
            for shop in shops:
                if shop.steps:  # else no reply could be read
                    writer.write(shop.session())
    return list(SessionStore.open(path).sessions("train"))
