"""Encodes sessions for the pointer network: choices, steps and past actions as words, categories and numbers.

    observation ─► OfferReader ─► ChoicePage ─► Encoder ─► Encoded (arrays.py)

An element is its name and the words of its name, text and card. A category is a property with few values, such as the
distance from the last click. Names, words and categories that occur in few train sessions are unknown: number 0.
"""

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replay_sessions.schema import Step, reply_action
from shop_env.choices.facts import FEATURES, OfferReader
from shop_env.choices.page_elements import element_places, element_words
from shop_env.choices.reader import ChoicePage
from shop_env.choices.relations import (
    CLICKS,
    DISTANCE,
    FROM_FARTHEST,
    IS_LAST,
    IS_SAME_PAGE,
    LENGTH,
    MOVEMENT,
    PLACE,
    TIMES,
)
from shop_env.choices.transitions import CONTEXTS, heading_of
from shop_env.observation import Observation, PastStep, observe_session
from shop_env.replies import Reply
from shop_env.reward import RewardConfig, score_reply
from shop_env.shopper_words import past_actions, words_of
from shop_env.train_view import TrainView
from train.pointer.arrays import Bags, Encoded, Ints

MIN_SESSIONS = 3  # a name, word or category of fewer sessions is unknown
MAX_PAST = 256  # past actions that the network reads; it begins anew after so many
FURTHEST = 15  # larger numbers count as this one
RELATION_COLUMNS = 7
RELATION_VALUES = 2 * FURTHEST + 2  # of a column: -FURTHEST to FURTHEST, and unknown
NUMBERS = len(CONTEXTS) + len(FEATURES)
CLIP = 5.0  # numbers further from their mean, in standard deviations, count as this far
Floats32 = NDArray[np.float32]


class SessionSteps(NamedTuple):
    """The steps to encode of a session, and all actions before the last of them.

    Attributes:
        steps: Of each step the number of actions before it, its page of choices, the HTML of its page, the index of the
            choice that was taken, None if that is unknown, and the reward of each choice; empty if there is none.
    """

    user_id: str
    history: Sequence[PastStep]
    steps: Sequence[tuple[int, ChoicePage, str, int | None, Sequence[float]]]


def train_sessions(reader: OfferReader, store: TrainView, reward: RewardConfig | None = None) -> Iterator[SessionSteps]:
    """Yields the sessions of the train split, each with the steps to learn from, and their rewards if there is one."""
    for session, learnt in reader.sessions(store):
        if not learnt:
            continue
        observations, steps = observe_session(session, store.context), []
        for index in learnt:
            page, logged = reader.read(observations[index], session.user_id), reply_action(session.steps[index].action)
            chosen = (number for number, choice in enumerate(page.choices) if reply_action(choice.action) == logged)
            rewards = [] if reward is None else _score(page, session.steps[index], reward)
            steps.append((index, page, observations[index]["page"], next(chosen, None), rewards))
        # Each past action from the observation after it, in which its page is still shown.
        history = [observation["history"][-1] for observation in observations[1 : learnt[-1] + 1]]
        yield SessionSteps(session.user_id, history, steps)


def _score(page: ChoicePage, step: Step, reward: RewardConfig) -> list[float]:
    """Computes the reward of each choice, without self-certainty, behind the logged rationale."""
    return [
        score_reply(Reply(step.rationale or "", choice.action), step.action, reward).total for choice in page.choices
    ]


class Vocabulary:
    """Numbers keys by their first appearance; 0 stands for unknown keys."""

    def __init__(self) -> None:
        self.numbers: dict[Hashable, int] = {}
        self.sessions = [0]  # with the key of each number
        self._last = [-1]
        self._is_fixed = False

    @classmethod
    def fixed(cls, numbers: dict[Hashable, int]) -> "Vocabulary":
        """Returns a vocabulary that takes no new keys."""
        vocabulary = cls()
        vocabulary.numbers, vocabulary._is_fixed = numbers, True
        return vocabulary

    def __len__(self) -> int:
        return 1 + len(self.numbers)

    def number(self, key: Hashable, session: int) -> int:
        """Returns the number of a key; an unknown key gets a new one unless the vocabulary is fixed."""
        number = self.numbers.get(key, 0)
        if self._is_fixed:
            return number
        if not number:
            number = self.numbers[key] = len(self.sessions)
            self.sessions.append(0)
            self._last.append(-1)
        if self._last[number] != session:
            self.sessions[number] += 1
            self._last[number] = session
        return number

    def fix(self) -> Ints:
        """Forgets keys of few sessions and takes no new ones; returns the new number of each old one, (numbers,)."""
        is_known = np.array(self.sessions) >= MIN_SESSIONS
        renumbered: Ints = np.where(is_known, np.cumsum(is_known), 0)
        self.numbers = {key: int(renumbered[number]) for key, number in self.numbers.items() if is_known[number]}
        self._is_fixed = True
        return renumbered


class _Rows:
    """The rows of the arrays, collected session by session."""

    def __init__(self) -> None:
        self.elements = Vocabulary()  # (type and name, words), 0 is no element
        self.users: list[str] = []
        self.past_ends, self.step_ends, self.choice_ends = [0], [0], [0]
        self.past_elements, self.past_categories = array("q"), array("q")
        self.step_past, self.step_products, self.chosen = array("q"), array("q"), array("q")
        self.step_categories: list[list[int]] = []
        self.choice_elements, self.choice_categories = array("q"), array("q")
        self.choice_relations: list[NDArray[np.int16]] = []
        self.choice_numbers: list[NDArray[np.float16]] = []
        self.choice_rewards = array("d")


class Encoder:
    """Encodes sessions; the train split is encoded first, which fixes vocabularies and the scale of numbers.

    Attributes:
        names, words, categories: The vocabularies.
        mean, deviation: The scale of numbers, (NUMBERS,).
    """

    def __init__(self, reader: OfferReader) -> None:
        self.reader = reader
        self.names: dict[str, int] = {}
        self.words: dict[str, int] = {}
        self.categories = Vocabulary()
        self.mean: Floats32 = np.zeros(NUMBERS, np.float32)
        self.deviation: Floats32 = np.ones(NUMBERS, np.float32)

    def encode_train(self, store: TrainView, reward: RewardConfig | None = None) -> Encoded:
        """Encodes the train split, with the rewards of choices; fixes vocabularies and the scale of numbers."""
        rows = self._read(train_sessions(self.reader, store, reward))
        names, words = Counter[str](), Counter[str]()
        elements: list[Any] = list(rows.elements.numbers)
        for (name, words_of_element), sessions in zip(elements, rows.elements.sessions[1:], strict=True):
            names[name] += sessions
            words.update(dict.fromkeys(words_of_element, sessions))
        self.names, self.words = _frequent(names), _frequent(words)
        renumbered = self.categories.fix()
        numbers = np.concatenate(rows.choice_numbers)
        is_known = ~np.isnan(numbers)
        count = np.maximum(1, is_known.sum(axis=0))
        self.mean = (np.where(is_known, numbers, 0).sum(axis=0, dtype=np.float32) / count).astype(np.float32)
        squares = np.where(is_known, numbers - self.mean, 0).astype(np.float32) ** 2
        self.deviation = np.sqrt(squares.sum(axis=0) / count).astype(np.float32)
        self.deviation[self.deviation < 1e-3] = 1.0
        return self._arrays(rows, renumbered)

    def encode(self, observations: Sequence[Observation], pages: Sequence[ChoicePage]) -> Encoded:
        """Encodes observations, each as a session with one step."""
        return self._arrays(
            self._read(
                SessionSteps("", seen["history"], [(len(seen["history"]), page, seen["page"], None, ())])
                for seen, page in zip(observations, pages, strict=True)
            ),
            np.arange(len(self.categories)),
        )

    def _read(self, sessions: Iterable[SessionSteps]) -> _Rows:
        rows = _Rows()
        for number, (user_id, history, all_steps) in enumerate(sessions):
            for piece, group in groupby(all_steps, lambda step: step[0] // MAX_PAST):
                steps, first = list(group), piece * MAX_PAST
                for past in history[first : steps[-1][0]]:
                    self._add_past(rows, number, past)
                for past_count, page, html, chosen, rewards in steps:
                    self._add_step(rows, number, page, html)
                    rows.choice_rewards.extend(rewards)
                    rows.step_past.append(past_count - first)
                    rows.chosen.append(-1 if chosen is None else chosen)
                rows.users.append(user_id)
                rows.past_ends.append(len(rows.past_elements))
                rows.step_ends.append(len(rows.step_past))
        return rows

    def _arrays(self, rows: _Rows, categories: Ints) -> Encoded:
        """Builds the arrays of rows.

        Args:
            categories: The number in the vocabulary of each number of a category in the rows.
        """
        numbers = (np.concatenate(rows.choice_numbers) - self.mean) / self.deviation
        elements: list[Any] = [("", ()), *rows.elements.numbers]
        bags = Bags.of(rows.step_categories)
        return Encoded(
            element_names=np.array([self.names.get(name, 0) for name, _ in elements]),
            element_words=Bags.of([[self.words.get(word, 0) for word in words] for _, words in elements]),
            past_elements=np.array(rows.past_elements),
            past_categories=categories[np.array(rows.past_categories).reshape(-1, 3)],
            past_ends=np.array(rows.past_ends),
            step_past=np.array(rows.step_past),
            step_products=np.array(rows.step_products),
            step_categories=bags._replace(numbers=categories[bags.numbers]),
            step_ends=np.array(rows.step_ends),
            chosen=np.array(rows.chosen),
            choice_elements=np.array(rows.choice_elements),
            choice_categories=categories[np.array(rows.choice_categories).reshape(-1, 4)],
            choice_relations=np.concatenate(rows.choice_relations),
            choice_numbers=np.clip(np.nan_to_num(numbers), -CLIP, CLIP).astype(np.float16),
            choice_rewards=np.array(rows.choice_rewards or [0.0] * rows.choice_ends[-1], dtype=np.float32),
            choice_ends=np.array(rows.choice_ends),
            users=rows.users,
        )

    def _add_past(self, rows: _Rows, session: int, past: PastStep) -> None:
        """Adds a past action: its element, role, place and the heading of its page."""
        action = next(iter(past_actions((past,))), {})
        place = element_places(past["page"]).get(str(action.get("name", "")))
        number = self.categories.number
        rows.past_elements.append(_element(rows, session, past["page"], action))
        rows.past_categories.extend((
            number(("past role", self.reader.role(**action)), session),
            number(("past place", min(place.rank, 2 * FURTHEST)), session) if place else 0,
            number(("past heading", heading_of(past["page"])), session),
        ))  # fmt: skip

    def _add_step(self, rows: _Rows, session: int, page: ChoicePage, html: str) -> None:
        """Adds a step and its choices."""
        number = self.categories.number
        relations, trail = _number_relations(page)
        product = {"type": "click", "name": page.products[1]}  # without its text and card, which another page shows
        rows.step_products.append(_element(rows, session, "", product) if page.products[1] else 0)
        categories = [*page.context, ("heading", page.heading), *trail]
        rows.step_categories.append([number(category, session) for category in categories])
        for choice in page.choices:
            action, (fit, origin, before) = reply_action(choice.action), choice.traits
            rows.choice_elements.append(_element(rows, session, html, action))
            is_text = action["type"] == "type_and_submit"
            rows.choice_categories.extend((
                number(("role", choice.role), session),
                number((choice.role, fit), session),
                number(("origin", origin), session) if is_text else 0,
                number(("before", before), session) if is_text else 0,
            ))  # fmt: skip
        rows.choice_relations.append(relations)
        rows.choice_numbers.append(np.array([(*c.transitions, *c.facts) for c in page.choices], dtype=np.float16))
        rows.choice_ends.append(len(rows.choice_elements))


def _element(rows: _Rows, session: int, page: str, action: dict[str, Any]) -> int:
    """Returns the number of an action's element in the rows."""
    kind, name, text = str(action.get("type", "")), str(action.get("name", "")), str(action.get("text", ""))
    words = element_words(page).get(name) or tuple(words_of(name))
    return rows.elements.number((f"{kind} {name}", (*words, *words_of(text)) if text else words), session)


def _frequent(counts: Counter[Any]) -> dict[Any, int]:
    return {key: number for number, key in enumerate((k for k, n in counts.items() if n >= MIN_SESSIONS), start=1)}


def _number_relations(page: ChoicePage) -> tuple[NDArray[np.int16], list[tuple[str, int]]]:
    """Returns the numbers of each choice's relations, (choices, RELATION_COLUMNS), and the step's trail as categories.

    A step's trail is that of the list with most clicks.
    """
    table = np.array([choice.relations for choice in page.choices])
    is_same, movement = table[:, IS_SAME_PAGE], table[:, MOVEMENT]
    columns = (
        table[:, PLACE] - FURTHEST,  # from 0, so that half of the values suffice for twice as many places
        table[:, DISTANCE],
        table[:, FROM_FARTHEST],
        table[:, DISTANCE] - movement,  # 0: as far as the last time
        movement,
        np.minimum(table[:, TIMES], 3) + 4 * table[:, IS_LAST] + 8 * (table[:, PLACE] == table[:, LENGTH] - 1),
        np.minimum(table[:, CLICKS], 7) + 8 * (is_same == 1) - FURTHEST,
    )
    values = np.clip(np.stack(columns, axis=1), -FURTHEST, FURTHEST)
    numbers = np.where(np.isnan(values), 2 * FURTHEST + 1, values + FURTHEST)
    numbers += RELATION_VALUES * np.arange(len(columns))  # each column has values of its own
    longest = int(np.argmax(np.nan_to_num(table[:, CLICKS], nan=-1.0)))
    trail = [("clicks", int(numbers[longest, -1])), ("movement", int(numbers[longest, -3]))]
    return numbers.astype(np.int16), trail
