"""A shop to walk through, made of a log's pages: an action leads where it led the people of the train split.

    train sessions ─► LinkGraph ─► walk ─► shop_env.evaluation.free_run ─► simulated sessions

Pages are rendered from events (replay_sessions/importers/events), so the same place has the same page in all sessions,
but for what is in the cart. An action that nobody did on a page leads where it led from other pages; one that nobody
did anywhere leaves the page as it is. A visit begins where a person's did, and ends in terminate, in what was
somebody's purchase, or after `MOST_REPLIES`; a reply that cannot be read does nothing.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from random import Random

from replay_sessions.foundation.progress import progress_bar
from replay_sessions.importers.sessions import PURCHASE
from replay_sessions.schema import Action, Session, Step, Terminate, reply_action
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import SplitPlan
from shop_env.evaluation.evaluate import LazyAgent
from shop_env.evaluation.free_run import VisitUnderWay, play_side_by_side
from shop_env.evaluation.generate import step_seed
from shop_env.observation import observe
from shop_env.replies import MalformedReply, action_json, parse_reply

MOST_REPLIES = 100
SIDE_BY_SIDE = 64


def is_purchase(action: Action) -> bool:
    """Whether the log calls it one."""
    return getattr(action, "click_type", None) == PURCHASE


class LinkGraph:
    """Where the actions of sessions led.

    Attributes:
        starts: The first page of each session.
        logged: The text of a purchase -> as the log has it.
    """

    def __init__(self, sessions: Iterable[Session]) -> None:
        self.starts: list[str] = []
        self.logged: dict[str, Action] = {}
        self._next: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)  # of all pages: ""
        for session in sessions:
            self.starts.append(session.steps[0].page)
            names = [action_json(reply_action(step.action)) for step in session.steps]
            for step, name, after in zip(session.steps, names, session.steps[1:], strict=False):
                for page in (step.page, ""):
                    self._next[page, name][after.page] = None
            if is_purchase(last := session.steps[-1].action):
                self.logged[names[-1]] = last

    def follow(self, page: str, name: str, draw: Random) -> str:
        """The page that follows an action: one of those that did."""
        return draw.choice(list(self._next.get((page, name)) or self._next.get(("", name)) or [page]))


def walk(graph: LinkGraph, name: str, seed: int) -> VisitUnderWay[Session | None]:
    """A visit; its name decides all draws of the shop. None: no reply could be read.

    Raises:
        Exception: What the agent gave in place of a reply.
    """
    draw, steps = Random(name), list[Step]()
    page = draw.choice(graph.starts)

    def session(*now: Step) -> Session:
        return Session(session_id=name, user_id=name, steps=(*steps, *now), source="simulated")

    for number in range(MOST_REPLIES):
        seen = observe(session(Step(page=page, action=Terminate())), len(steps))
        answer = yield seen, step_seed(seed, name, number)
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(reply := parse_reply(answer), MalformedReply):
            text = action_json(reply_action(reply.action))
            steps.append(Step(page=page, action=graph.logged.get(text, reply.action)))
            if isinstance(reply.action, Terminate) or text in graph.logged:
                break
            page = graph.follow(page, text, draw)
    return session() if steps else None


def simulate(agent: LazyAgent, graph: LinkGraph, visits: int, path: Path, seed: int) -> list[Session]:
    """An agent's visits, which are written to a store; those of a store that is there are not played again."""
    if not path.exists():
        played = (walk(graph, f"{path.name}-{number}", seed) for number in range(visits))
        with progress_bar(path.name, visits, "visits") as advance:
            ended = []
            for session in play_side_by_side(agent.get(), played, SIDE_BY_SIDE):
                ended.append(session)
                advance(1)
        with StoreWriter(path, source="simulated", splits=SplitPlan(validation=0, test=0)) as writer:
            for session in sorted(filter(None, ended), key=lambda session: session.session_id):  # not as they ended
                writer.write(session)
    return list(SessionStore.open(path).sessions("train"))
