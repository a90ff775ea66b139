"""Counts the steps at which another element of the page earns as much as the logged one.

There the reward does not say which element the shopper meant. It happens where names differ in nothing that the
similarity counts, and with a user's reward that does not read names.

    store, steps ─► a sample of them ─► each other element of the page in place of the logged one ─► Ties
"""

import random
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from replay_sessions.elements import find_elements
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Action, Click, Session, Step, TypeAndSubmit, reply_action
from replay_sessions.store import SessionStore
from shop_env.replies import Reply
from shop_env.reward.matching import unlogged_fields
from shop_env.reward.score import RewardConfig, score_reply
from shop_env.reward.similarity import ROUNDING, rouge_l

SAMPLED_STEPS = 200
STEPS_A_SESSION = 10
WARNING_SHARE = 0.05
# A user's function may take a second a call: it scores so many steps, and there the elements with the likest names.
OWN_STEPS, OWN_ELEMENTS = 20, 5


class Ties(Config):
    """The steps of a sample at which the reward pays another element of the page like the logged one.

    Attributes:
        steps: Number of sampled steps where this can be: the log has every field of a click or of typing, and the page
            has another element that takes it.
        tied: Number of these at which such an element, with the same text, earns at least as much as the logged one.
        example: The first of these, with both names; "" if there is none.
    """

    steps: int
    tied: int
    example: str = ""

    @property
    def are_many(self) -> bool:
        return self.tied > WARNING_SHARE * self.steps

    @property
    def text(self) -> str:
        at = f"At {self.tied} of {self.steps} sampled steps another element of the page earns as much as the logged one"
        return f"{at}: {self.example}." if self.tied else f"{at}."


def sample_ties(store: SessionStore, keys: Sequence[tuple[str, int]], reward: RewardConfig) -> Ties | None:
    """Returns the ties of a random sample of steps; None if only a policy in training can measure the reward.

    Args:
        keys: The steps to draw from, as session id and index.
    """
    return count_ties(_draw_steps(store, keys), reward)


def _draw_steps(store: SessionStore, keys: Sequence[tuple[str, int]]) -> Iterator[tuple[Session, int]]:
    """Yields the steps of random sessions, of each at most STEPS_A_SESSION."""
    rng, indices, room = random.Random(0), dict[str, list[int]](), SAMPLED_STEPS
    for session_id, index in keys:
        indices.setdefault(session_id, []).append(index)
    for session_id in rng.sample(list(indices), len(indices)):
        count = min(room, STEPS_A_SESSION, len(indices[session_id]))
        if not count:
            return
        session, room = store.session(session_id), room - count
        yield from ((session, index) for index in sorted(rng.sample(indices[session_id], count)))


def count_ties(steps: Iterable[tuple[Session, int]], reward: RewardConfig) -> Ties | None:
    """Returns the ties of these steps, each a session and an index; None as for `sample_ties`."""
    if reward.kind == "log_likelihood":
        return None
    own, counted, examples = ":" in reward.kind, 0, list[str]()
    for session, index in steps:
        step = session.steps[index]
        rivals = _rivals(step, most=OWN_ELEMENTS if own else None)
        if not rivals:
            continue
        best = _earned(step.action, step, reward)
        tie = next((rival for rival in rivals if _earned(rival, step, reward) >= best - ROUNDING), None)
        if tie is not None:
            logged = reply_action(step.action)["name"]
            place = f"session {session.session_id!r}, step {index}"
            examples.append(f"{tie.name!r} for {logged!r} ({best:,.6g} points; {place})")
        counted += 1
        if own and counted == OWN_STEPS:
            break
    return Ties(steps=counted, tied=len(examples), example=examples[0] if examples else "")


def _rivals(step: Step, most: int | None) -> list[Click | TypeAndSubmit]:
    """Returns the logged action on each other element of the page that takes it; none if a field was not logged.

    Args:
        most: Number of these elements to take, those with the likest names; None means all.
    """
    logged = step.action
    if not isinstance(logged, Click | TypeAndSubmit) or unlogged_fields(logged):
        return []
    accepts = "click" if isinstance(logged, Click) else "type"
    names = [element.name for element in find_elements(step.page) if element.accepts == accepts]
    names = [name for name in names if name != logged.name]
    if most is not None:
        names = sorted(names, key=lambda name: rouge_l(name, logged.name), reverse=True)[:most]
    return [msgspec.structs.replace(logged, name=name) for name in names]


def _earned(action: Action, step: Step, reward: RewardConfig) -> float:
    return score_reply(Reply("Because.", action), step.action, reward).total
