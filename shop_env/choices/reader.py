"""Reads an observation as a page of choices with roles, traits and a context, which fitted agents learn from.

    TrainView ─► Reader (the names and words that recur, counts) ─► ChoicePage of choices ─► an agent's probabilities

A *role* describes an action independently of the product: its type and the parts of the element's name that recur over
sessions (`click search_results.*.view_product`). *Traits* distinguish the choices of one role by the shopper's words.
Roles and traits depend on the observation, and on the names and words that recur in the train split.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, product
from sys import intern
from typing import NamedTuple, Self, assert_never

from replay_sessions.elements import Element
from replay_sessions.schema import (
    ACTION_TYPES,
    Action,
    ActionType,
    Click,
    Scroll,
    Session,
    Terminate,
    TypeAndSubmit,
    reply_action,
)
from shop_env.candidates import candidate_phrases
from shop_env.choices.offers import read_offers
from shop_env.choices.page_elements import element_places, page_elements, visible_words
from shop_env.choices.relations import NO_RELATIONS, relate_clicks
from shop_env.choices.transitions import Context, TransitionCounts, heading_of, last_products, outcome_of
from shop_env.observation import Observation, observe_session
from shop_env.shopper_words import past_actions, shopper_words, words_of
from shop_env.train_view import TrainView

RECURS = 0.05  # a name part or word recurs when this share of the train sessions has it
MAX_WORDS = 64
MAX_CLICKS, MAX_TYPED = 400, 400
SPAN_WORDS, GOAL_WORDS = 4, 30
WORD = re.compile(r"[^\W_]+")


class Choice(NamedTuple):
    """An action that is possible on a page, with the inputs of models.

    Attributes:
        traits: For a click: the match with the shopper's words, the rank among the clicks of its role, and "". For a
            typed text: its length and repetition, its origin, and the word before it in the goal.
        numbers: The match or repetition as numbers, (6,); the last number of a click is its rank.
        relations: Relations to the session so far (relations.py).
        transitions: The log-shares of the choice after what came before (transitions.py).
        facts, words: Numbers of the offer and words of the element, which OfferReader adds (facts.py).
    """

    action: Action
    role: str
    traits: tuple[str, str, str]
    numbers: tuple[float, ...]
    relations: tuple[float, ...] = NO_RELATIONS
    transitions: tuple[float, ...] = ()
    facts: Sequence[float] = ()
    words: tuple[str, ...] = ()


class ChoicePage(NamedTuple):
    """An observation as the input of a fitted agent.

    Attributes:
        past: The roles of the actions so far, oldest first.
        kind: The kind of page: the recurring first parts of its elements' names.
        context: Words that describe the step: kind, past, progress, and the recurring words of persona and goal.
        heading: The page's heading.
        products: The names of the last two products that were clicked, the earlier one first; "" for none.
    """

    choices: list[Choice]
    past: tuple[str, ...]
    kind: str
    context: list[str]
    heading: str = ""
    products: tuple[str, str] = ("", "")

    @property
    def roles(self) -> list[str]:
        return [choice.role for choice in self.choices]

    @property
    def actions(self) -> list[Action]:
        return [choice.action for choice in self.choices]


class Example(NamedTuple):
    """A step of the train split.

    Attributes:
        role: The role of the logged action.
        chosen: The index of the logged action among the page's choices; None if it is not among them.
    """

    page: ChoicePage
    role: str
    chosen: int | None
    user_id: str


class Phrase(NamedTuple):
    """A text that the shopper might type.

    Attributes:
        origin: Its number among the candidates' phrases, or its position in the goal.
        before: The word before it in the goal, or "".
        length: The number of its words.
    """

    text: str
    origin: str
    before: str
    length: int


class ReaderState(NamedTuple):
    """The learnt state of a reader: whether the log scrolls, recurring parts of names and words, and transitions."""

    scrolls: bool
    parts: list[str]
    words: list[str]
    transitions: list[tuple[Context, dict[str, int]]]
    typical_price: float = 1.0  # of an OfferReader


class Reader:
    """Reads observations as pages of choices, with the names and words that recur in the train split.

    Args:
        store: The store to learn from.
        first_action, inferred, max_steps: The steps to learn from, as in `TrainView.learnt`.
    """

    def __init__(
        self,
        store: TrainView,
        *,
        first_action: bool = False,
        inferred: bool = False,
        max_steps: int | None = None,
    ) -> None:
        self._steps = {"first_action": first_action, "inferred": inferred, "max_steps": max_steps}
        self._scrolls = store.scrolls
        parts, words, sessions = Counter[str](), Counter[str](), len(store)
        for session in store.sessions():
            names = {element.name for step in session.steps for element in page_elements(step.page)}
            parts.update({part for name in names for part in name.split(".")})
            words.update(_marked_words(session.persona.text if session.persona else "", session.goal or ""))
        at_least = max(2, RECURS * sessions)
        self._parts = {part for part, count in parts.items() if count >= at_least}
        recurring = {word: n for word, n in words.items() if at_least <= n <= (1 - RECURS) * sessions}
        self._roles: dict[tuple[str, str], str] = {}
        self._words = set(sorted(recurring, key=lambda word: (-recurring[word], word))[:MAX_WORDS])
        self._transitions = TransitionCounts(self.sessions(store))

    def state(self) -> ReaderState:
        """Returns what was learnt, for `restored`."""
        return ReaderState(self._scrolls, sorted(self._parts), sorted(self._words), self._transitions.total)

    @classmethod
    def restored(cls, state: ReaderState) -> Self:
        """Returns a reader that reads observations outside of the train split as the one with this state does."""
        reader = cls.__new__(cls)
        reader._scrolls, reader._roles = state.scrolls, {}
        reader._parts, reader._words = set(state.parts), set(state.words)
        reader._transitions = TransitionCounts.restored(state.transitions)
        return reader

    def sessions(self, store: TrainView) -> Iterator[tuple[Session, list[int]]]:
        """Yields the sessions to learn from in storage order, each with the indices of the steps to learn from."""
        return store.learnt(**self._steps)  # type: ignore[arg-type]  # mypy takes all values to be of one type

    def examples(self, store: TrainView) -> Iterator[Example]:
        """Yields the steps to learn from in storage order."""
        steps = (
            (session, observations[index], index)
            for session, learnt in self.sessions(store)
            for observations in [observe_session(session, store.context)]
            for index in learnt
        )
        for session, observation, index in islice(steps, self._steps["max_steps"]):
            page, logged = self.read(observation, session.user_id), reply_action(session.steps[index].action)
            chosen = (number for number, choice in enumerate(page.choices) if reply_action(choice.action) == logged)
            yield Example(page, self.role(**logged), next(chosen, None), session.user_id)

    def read(self, observation: Observation, user_id: str | None = None) -> ChoicePage:
        """Reads an observation as a page of choices; the first choice is terminate.

        Args:
            user_id: The user of a step of the train split, whose actions are not counted; None outside of it.
        """
        past = past_actions(observation["history"])
        elements = page_elements(observation["page"])
        past_roles = tuple(self.role(**action) for action in past)
        roots = {element.name.partition(".")[0] for element in elements}
        kind = " ".join(sorted(roots & self._parts))
        visible, goal = visible_words(observation["page"]), words_of(observation["goal"])
        by_type = (
            self._choices(action_type, elements, observation, past)
            for action_type in sorted(ACTION_TYPES, key=lambda name: name != "terminate")
        )
        choices, heading = list(chain.from_iterable(by_type)), heading_of(observation["page"])
        outcomes = [outcome_of(reply_action(choice.action)) for choice in choices]
        transitions = self._transitions.log_shares(heading, past, outcomes, user_id)
        return ChoicePage(
            choices=[choice._replace(transitions=shares) for choice, shares in zip(choices, transitions, strict=True)],
            past=past_roles,
            kind=kind,
            context=[
                "any",
                f"kind {kind}",
                f"last {' '.join(past_roles[-1:])}",
                f"last two {' '.join(past_roles[-2:])}",
                f"step {min(observation['step'], 9)}",
                f"goal shown {round(4 * len({*goal}.intersection(visible)) / max(1, len({*goal})))}",
                *sorted(_marked_words(observation["persona"], observation["goal"]) & self._words),
            ],
            heading=heading,
            products=last_products(past),
        )

    def role(self, type: str = "", name: str = "", **_: object) -> str:
        """Returns the role of the action with these fields."""
        if (role := self._roles.get((type, name))) is None:
            parts = [part if part in self._parts else "*" for part in str(name).split(".")]
            role = self._roles[type, name] = intern(f"{type} {'.'.join(parts)}" if name else str(type))
        return role

    def _choices(
        self,
        action_type: ActionType,
        elements: Sequence[Element],
        observation: Observation,
        past: Sequence[dict[str, object]],
    ) -> Iterable[Choice]:
        """Lists the choices of one type of action."""
        match action_type:
            case "click":
                return self._clicks(elements, observation, past)
            case "type_and_submit":
                return self._texts(elements, observation, past)
            case "terminate":
                return [Choice(Terminate(), "terminate", ("", "", ""), (0.0,) * 6)]
            case "scroll":
                return [Choice(Scroll(), "scroll", ("", "", ""), (0.0,) * 6)] if self._scrolls else []
            case _:
                assert_never(action_type)

    def _clicks(
        self, elements: Sequence[Element], observation: Observation, past: Sequence[dict[str, object]]
    ) -> Iterator[Choice]:
        """Yields the clicks on the page, with their match with the shopper's words and their relations."""
        clicks = [element for element in elements if element.accepts == "click"][:MAX_CLICKS]
        goal = set(words_of(observation["goal"]))
        matches = match_words(clicks, shopper_words(observation))
        best = max((match for match, _ in matches), default=0.0)
        clicked = Counter(action.get("name") for action in past)
        ranks = Counter[str]()
        prices = {name: offer.price for name, offer in read_offers(observation["page"]).by_name.items() if offer.price}
        places = element_places(observation["page"])
        relations = relate_clicks([element.name for element in clicks], places, past, prices)
        for element, (match, words), related in zip(clicks, matches, relations, strict=True):
            role = self.role("click", element.name)
            rank, times, in_goal = ranks[role], clicked[element.name], len(words & goal)
            ranks[role] += 1
            is_best = match == best > 0
            fit = f"best {is_best} match {_bucket(match)} goal {min(in_goal, 4)} done {min(times, 2)}"
            numbers = (match, float(is_best), in_goal, in_goal / max(1, len(words)), times, rank)
            traits = (intern(fit), intern(f"place {min(rank, 9)}"), "")
            yield Choice(Click(name=element.name), role, traits, numbers, related)

    def _texts(
        self, elements: Sequence[Element], observation: Observation, past: Sequence[dict[str, object]]
    ) -> Iterator[Choice]:
        """Yields each phrase that the shopper might type, for each input of the page."""
        inputs = [element.name for element in elements if element.accepts == "type"]
        typed = [action for action in past if action.get("text")]
        by_name, by_text = (Counter(action.get(key) for action in typed) for key in ("name", "text"))
        phrases = _phrases(observation) if inputs else ()
        for name, phrase in islice(product(inputs, phrases), MAX_TYPED):
            filled, repeats = by_name[name], by_text[phrase.text]
            fit = f"words {min(phrase.length, 5)} filled {min(filled, 2)} again {min(repeats, 2)}"
            numbers = (filled, repeats, phrase.length, 0.0, 0.0, 0.0)
            role, traits = self.role("type_and_submit", name), (intern(fit), phrase.origin, f"after {phrase.before}")
            yield Choice(TypeAndSubmit(name=name, text=phrase.text), role, traits, numbers)


def match_words(elements: Sequence[Element], words: Iterable[str]) -> list[tuple[float, set[str]]]:
    """Computes for each element the match of its name and text with the words, and the set of its words.

    A word on n of the elements counts 1/n, because a word of all products distinguishes none.
    """
    query = set(words)
    words_by_element = [set(words_of(f"{element.name} {element.text}")) for element in elements]
    carriers = Counter(word for element_words in words_by_element for word in element_words)
    # Sorted, because the order of a float sum changes its last bit, which would decide ties.
    return [
        (sum(1 / carriers[word] for word in sorted(element_words & query)), element_words)
        for element_words in words_by_element
    ]


def _phrases(observation: Observation) -> Iterator[Phrase]:
    """Yields texts that the shopper might type: phrases of the page's candidates, then runs of words of the goal."""
    goal = observation["goal"]
    words = list(WORD.finditer(goal))[:GOAL_WORDS]
    spans: dict[str, Phrase] = {}
    for first, start in enumerate(words):
        before = words[first - 1].group().lower() if first else ""
        for length, end in enumerate(words[first : first + SPAN_WORDS], start=1):
            text = goal[start.start() : end.end()]
            spans.setdefault(text, Phrase(text, f"goal {min(first, 9)}", before, length))
    phrases = candidate_phrases(observation)
    for index, text in enumerate(phrases):
        before = spans[text].before if text in spans else ""
        yield Phrase(text, f"phrase {index}", before, len(words_of(text)))
    yield from (phrase for text, phrase in spans.items() if text not in phrases)


def _marked_words(persona: str, goal: str) -> set[str]:
    return {f"{mark} {word}" for mark, text in (("persona", persona), ("goal", goal)) for word in words_of(text)}


def _bucket(match: float) -> int:
    """Returns the number of the match's bucket: 0, up to 1/4, up to 1/2, up to 1, up to 2, more."""
    return sum(match > end for end in (0, 0.25, 0.5, 1, 2))
