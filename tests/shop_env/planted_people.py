"""People with habits of their own, and agents that play them rightly, or wrongly in one known way.

Each person does each kind of action with a probability of its own, drawn around what people do on average, and leaves
at the end of the session. The agents answer the same steps:

    anew       from the person's own habits: as good as one can be
    collapsed  from the average of all habits, for everybody: one average shopper
    sharp      from the person's habits to the fourth power: too often what it mostly does
    copied     what another person did in another session, step by step
"""

from collections.abc import Callable

import numpy as np

from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from shop_env.metrics import StepRecord
from tests.shop_env.planted import answer

__all__ = ["AGENTS", "HABITS", "People"]

HABITS: tuple[Action, ...] = (
    Click(name="search_results.red_kettle.view_product"),
    Click(name="product.reviews"),
    TypeAndSubmit(name="q", text="kettle"),
    Click(name="refinements.brand.acme"),
    Click(name="nav_bar.home"),
)
AVERAGE = (0.35, 0.25, 0.2, 0.12, 0.08)
AGENTS = ("anew", "collapsed", "sharp", "copied")


class People:
    """A log of `users` people with `visits` sessions each, and what agents answer to it."""

    def __init__(self, seed: int, users: int = 40, visits: int = 6, alike: float = 8.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.habits = self.rng.dirichlet(alike * np.array(AVERAGE), size=users)
        self.sessions = [self._session(user, visit) for user in range(users) for visit in range(visits)]
        self.visits = visits

    def _session(self, user: int, visit: int) -> Session:
        kinds = self.rng.choice(len(HABITS), p=self.habits[user], size=self.rng.integers(4, 11))
        actions = [HABITS[0], *(HABITS[kind] for kind in kinds), Terminate()]
        steps = tuple(Step(page="<p>page</p>", action=action) for action in actions)
        return Session(session_id=f"s{user}-{visit}", user_id=f"u{user}", source="test", steps=steps)

    def habits_of(self, agent: str, user: int) -> np.ndarray:
        """With which probability the agent holds each habit, as this user."""
        if agent == "collapsed":
            found = self.habits.mean(axis=0)
        elif agent == "copied":
            found = self.habits[(user + 1) % len(self.habits)]
        else:
            found = self.habits[user] ** (4 if agent == "sharp" else 1)
        return found / found.sum()

    def answers(self, agent: str) -> list[StepRecord]:
        """The records of an agent, which leaves when the person does."""
        reply = self._copied if agent == "copied" else self._drawn(agent)
        return answer(
            self.sessions, lambda session, index: Terminate() if _is_last(session, index) else reply(session, index)
        )

    def _drawn(self, agent: str) -> Callable[[Session, int], Action]:
        def reply(session: Session, index: int) -> Action:
            habits = self.habits_of(agent, int(session.user_id[1:]))
            return HABITS[self.rng.choice(len(HABITS), p=habits)]

        return reply

    def _copied(self, session: Session, index: int) -> Action:
        other = self.sessions[(self.sessions.index(session) + self.visits) % len(self.sessions)]
        done = [step.action for step in other.steps[1:-1]]
        return done[(index - 1) % len(done)]


def _is_last(session: Session, index: int) -> bool:
    return index == len(session.steps) - 1
