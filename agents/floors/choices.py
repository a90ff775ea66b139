"""What a floor sees of a step: what can be done on the page, each choice with its role and traits, and the context.

    TrainView ─► Reader (which names and words recur) ─► Page of choices ─► a floor's probabilities

A *role* is what an action is, whatever the product: its type and the parts of the element's name that recur over
sessions (`click search_results.*.view_product`). *Traits* tell the choices of one role apart by what the shopper has
said. All of it follows from the observation alone; what recurs is counted in the train split.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from sys import intern
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser

from agents.train_view import TrainView
from replay_sessions.elements import Element, find_elements
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit, reply_action
from shop_env.candidates import given_phrases
from shop_env.given_words import given_words, past_actions, words_of
from shop_env.observation import Observation, observe_session

__all__ = ["Choice", "Example", "Page", "Reader"]

RECURS = 0.05  # a name part or word recurs when it is found in this share of the train sessions
WORDS_KEPT = 64
MOST_CLICKS, MOST_TYPED = 400, 400
SPAN_WORDS, GOAL_WORDS = 4, 30
PAGE_WORDS = 200
WORD = re.compile(r"[^\W_]+")


class Choice(NamedTuple):
    """Something that can be done on a page.

    Attributes:
        traits: How it fits what was said, which of its role it is, and what stands before a typed text in the goal.
        numbers: The same and more as numbers.
    """

    action: Action
    role: str
    traits: tuple[str, str, str]
    numbers: tuple[float, ...]


class Page(NamedTuple):
    """A step as a floor sees it.

    Attributes:
        past: The roles of the actions so far, oldest first.
        kind: Which elements the page is made of.
        context: Words on the whole step: kind, past, progress, and the recurring words of persona and goal.
        words: Those of goal, persona and page.
    """

    choices: list[Choice]
    past: tuple[str, ...]
    kind: str
    context: list[str]
    words: list[str]

    @property
    def roles(self) -> list[str]:
        return [choice.role for choice in self.choices]


class Example(NamedTuple):
    """A step of the train split: the page, the role of what was done there, and which choice that was, if it is one."""

    page: Page
    role: str
    chosen: int | None


class Phrase(NamedTuple):
    """A text that might be typed: how it came about, the word before it in the goal, its number of words."""

    text: str
    origin: str
    before: str
    length: int


class Reader:
    """Reads observations as pages of choices, knowing what recurs in the train split."""

    def __init__(self, store: TrainView) -> None:
        parts, words, sessions = Counter[str](), Counter[str](), len(store)
        for session in store.sessions():
            names = {element.name for step in session.steps for element in find_elements(step.page)}
            parts.update({part for name in names for part in name.split(".")})
            persona = session.persona.text if session.persona else ""
            words.update({*_marked("persona", persona), *_marked("goal", session.goal or "")})
        at_least = max(2, RECURS * sessions)
        self._parts = {part for part, count in parts.items() if count >= at_least}
        telling = {word: n for word, n in words.items() if at_least <= n <= (1 - RECURS) * sessions}
        self._words = set(sorted(telling, key=lambda word: (-telling[word], word))[:WORDS_KEPT])

    def examples(self, store: TrainView, *, skip_first_action: bool, max_steps: int) -> Iterator[Example]:
        """The scored steps of the train split, at most so many, in storage order."""
        left = max_steps
        for session in store.sessions():
            steps = list(zip(observe_session(session), session.steps, strict=True))[int(skip_first_action) :]
            for observation, step in steps[:left]:
                page, logged = self.read(observation), reply_action(step.action)
                same = (at for at, one in enumerate(page.choices) if reply_action(one.action) == logged)
                yield Example(page, self._role(**logged), next(same, None))
            left -= len(steps)
            if left <= 0:
                return

    def read(self, observation: Observation) -> Page:
        """The choices of a step, leaving first."""
        past = past_actions(observation["history"])
        elements = find_elements(observation["page"])
        choices = [Choice(Terminate(), "terminate", ("", "", ""), (0.0,) * 6)]
        choices += self._clicks(elements, observation, past)
        choices += self._texts(elements, observation, past)
        past_roles = tuple(self._role(**action) for action in past)
        roots = {one.name.partition(".")[0] for one in elements}
        kind = " ".join(sorted(root for root in roots if root in self._parts))
        seen = words_of(_visible(observation["page"]))[:PAGE_WORDS]
        return Page(
            choices=choices,
            past=past_roles,
            kind=kind,
            context=self._context(observation, past_roles, kind, seen),
            words=[*words_of(observation["goal"]), *words_of(observation["persona"]), *seen],
        )

    def _role(self, type: str = "", name: str = "", **_: object) -> str:
        parts = [part if part in self._parts else "*" for part in str(name).split(".")]
        return intern(f"{type} {'.'.join(parts)}" if name else str(type))

    def _clicks(
        self, elements: Sequence[Element], observation: Observation, past: Sequence[dict[str, object]]
    ) -> Iterator[Choice]:
        """Clicks, with how well each matches the words given: a word on n elements of the page counts 1/n."""
        clicks = [element for element in elements if element.accepts == "click"][:MOST_CLICKS]
        words = [set(words_of(f"{element.name} {element.text}")) for element in clicks]
        carriers = Counter(word for own in words for word in own)
        goal, given = set(words_of(observation["goal"])), set(given_words(observation))
        matches = [sum(1 / carriers[word] for word in sorted(own & given)) for own in words]
        best = max(matches, default=0.0)
        done = Counter(action.get("name") for action in past)
        places = Counter[str]()
        for element, own, match in zip(clicks, words, matches, strict=True):
            role = self._role("click", element.name)
            place = places[role]
            places[role] += 1
            in_goal = len(own & goal)
            is_best = match == best > 0
            fit = f"best {is_best} match {_bucket(match)} goal {min(in_goal, 4)} done {min(done[element.name], 2)}"
            numbers = (match, float(is_best), in_goal, in_goal / max(1, len(own)), done[element.name], place)
            yield Choice(Click(name=element.name), role, (intern(fit), intern(f"place {min(place, 9)}"), ""), numbers)

    def _texts(
        self, elements: Sequence[Element], observation: Observation, past: Sequence[dict[str, object]]
    ) -> Iterator[Choice]:
        """Each phrase that the shopper has given, typed into each input."""
        inputs = [element for element in elements if element.accepts == "type"]
        typed = [(action.get("name"), action.get("text")) for action in past if action.get("text")]
        phrases = list(_phrases(observation)) if inputs else []
        pairs = [(element.name, phrase) for element in inputs for phrase in phrases]
        for name, phrase in pairs[:MOST_TYPED]:
            filled = sum(into == name for into, _ in typed)
            again = sum(text == phrase.text for _, text in typed)
            fit = f"words {min(phrase.length, 5)} filled {min(filled, 2)} again {min(again, 2)}"
            numbers = (filled, again, phrase.length, 0.0, 0.0, 0.0)
            role, traits = self._role("type_and_submit", name), (intern(fit), phrase.origin, f"after {phrase.before}")
            yield Choice(TypeAndSubmit(name=name, text=phrase.text), role, traits, numbers)

    def _context(self, observation: Observation, past: tuple[str, ...], kind: str, seen: Iterable[str]) -> list[str]:
        goal = set(words_of(observation["goal"]))
        shown = len(goal.intersection(seen)) / max(1, len(goal))
        told = {*_marked("persona", observation["persona"]), *_marked("goal", observation["goal"])}
        return [
            "any",
            f"kind {kind}",
            f"last {' '.join(past[-1:])}",
            f"last two {' '.join(past[-2:])}",
            f"step {min(observation['step'], 9)}",
            f"goal shown {round(4 * shown)}",
            *sorted(told & self._words),
        ]


def _phrases(observation: Observation) -> Iterator[Phrase]:
    """What the shopper might type: the phrases of the page's candidates, then every run of a few words of the goal."""
    goal = observation["goal"]
    words = list(WORD.finditer(goal))[:GOAL_WORDS]
    spans: dict[str, Phrase] = {}
    for first, start in enumerate(words):
        before = words[first - 1].group().lower() if first else ""
        for length, end in enumerate(words[first : first + SPAN_WORDS], start=1):
            text = goal[start.start() : end.end()]
            spans.setdefault(text, Phrase(text, f"goal {min(first, 9)}", before, length))
    known = given_phrases(observation)
    for place, text in enumerate(known):
        before = spans[text].before if text in spans else ""
        yield Phrase(text, f"phrase {place}", before, len(words_of(text)))
    yield from (phrase for text, phrase in spans.items() if text not in known)


def _visible(page: str) -> str:
    body = LexborHTMLParser(page).body
    return body.text(separator=" ") if body is not None else ""


def _marked(mark: str, text: str) -> set[str]:
    return {f"{mark} {word}" for word in words_of(text)}


def _bucket(match: float) -> int:
    """0, up to 1/4, up to 1/2, up to 1, up to 2, more."""
    return sum(match > end for end in (0, 0.25, 0.5, 1, 2))
