"""The actions that a page offers, as a list: what agents that choose (instead of writing) choose from.

Stands between the observation and the discrete view (wrappers.py), and behind the likelihood metrics. The list is made
from the observation alone, never from the logged action: leaving, a click on each element, and each phrase that the
shopper has given (goal, earlier queries) typed into each input. What a shopper types freely is not always among them.
"""

import json
import re
from collections.abc import Iterator
from itertools import combinations

from replay_sessions.elements import find_elements
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit
from shop_env.observation import Observation

__all__ = ["candidate_actions", "given_phrases", "words_of"]

_WORD = re.compile(r"[^\W_]+")
_QUOTED = re.compile(r'"([^"<>]+)"')
_PHRASE_WORDS = 4


def words_of(text: str) -> list[str]:
    """Lower-case words of any script, in order; names are split at dots and underscores.

    >>> words_of("search_results.Red_Kettle.view_product")
    ['search', 'results', 'red', 'kettle', 'view', 'product']
    """
    return _WORD.findall(text.lower())


# Words of a goal that nobody types into a search box.
_IDLE_WORDS = frozenset(
    words_of(
        "a am an and are at buy can could find for from get i in is it like looking me my need of on or please price "
        "see show some than that the to want with would you"
    )
)


def candidate_actions(observation: Observation, max_candidates: int = 64, max_phrases: int = 16) -> list[Action]:
    """What can be done on the page: leaving first, then clicks in document order, then typing.

    Of more clicks than there is room for, those that share most words with the goal and the history stay.
    """
    elements = find_elements(observation["page"])
    inputs = [element.name for element in elements if element.accepts == "type"]
    typing: list[Action] = [
        TypeAndSubmit(name=name, text=phrase) for name in inputs for phrase in given_phrases(observation, max_phrases)
    ]
    typing = typing[: max_candidates // 2]
    room = max_candidates - 1 - len(typing)
    clicks = [element for element in elements if element.accepts == "click"]
    if len(clicks) > room:
        given = set(_given_words(observation))
        share = [len(given.intersection(words_of(f"{element.name} {element.text}"))) for element in clicks]
        kept = sorted(sorted(range(len(clicks)), key=lambda place: -share[place])[:room])
        clicks = [clicks[place] for place in kept]
    return [Terminate(), *(Click(name=element.name) for element in clicks), *typing]


def given_phrases(observation: Observation, max_phrases: int = 16) -> list[str]:
    """What the shopper might type: quoted parts of the goal, choices of up to four of its words in order, old queries.

    The goal's first clause with a telling word is used, longest choices first.

    >>> goal: Observation = {"page": "", "history": (), "persona": "", "goal": "Buy a red kettle, cheap.", "step": 0}
    >>> given_phrases(goal)
    ['red kettle', 'red', 'kettle']
    """
    phrases = [*_QUOTED.findall(observation["goal"]), *_old_queries(observation), *_word_choices(observation["goal"])]
    return list(dict.fromkeys(phrase.strip() for phrase in phrases if phrase.strip()))[:max_phrases]


def _word_choices(goal: str) -> Iterator[str]:
    for clause in re.split(r"[,;:.!?\n]", _QUOTED.sub("", goal)):
        telling = [word for word in words_of(clause) if word not in _IDLE_WORDS][:_PHRASE_WORDS]
        if telling:
            for length in range(len(telling), 0, -1):
                yield from (" ".join(choice) for choice in combinations(telling, length))
            return


def _old_queries(observation: Observation) -> Iterator[str]:
    for past in observation["history"]:
        yield json.loads(past["action"]).get("text", "")


def _given_words(observation: Observation) -> Iterator[str]:
    yield from words_of(observation["goal"])
    for past in observation["history"]:
        yield from words_of(past["rationale"])
    for query in _old_queries(observation):
        yield from words_of(query)
