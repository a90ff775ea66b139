"""The actions that a page offers, as a list: agents that choose an action instead of writing one choose from it.

The discrete view (wrappers.py) and the likelihood metrics build the list from the observation, never from the logged
action. It holds terminate, a click on each element, and each phrase of the shopper (from the goal and earlier queries)
typed into each input. If the goal is hidden, the phrases are the earlier queries alone. A text that a shopper types
freely is not always in the list.
"""

from itertools import combinations

from replay_sessions.elements import find_elements
from replay_sessions.schema import Action, Click, Scroll, Terminate, TypeAndSubmit
from shop_env.observation import Observation
from shop_env.shopper_words import content_words, past_actions, quoted_parts, shopper_words, words_of

MAX_CANDIDATES = 400  # lists of products may have 280 elements
_PHRASE_WORDS = 4
_MOST_PHRASES = 16


def candidate_actions(
    observation: Observation, max_candidates: int = MAX_CANDIDATES, *, submitted: bool = True, scrolls: bool = False
) -> list[Action]:
    """Lists the actions that a page offers: terminate first, then clicks in document order, typing, and scroll.

    If the clicks do not all fit, the list keeps those that share most words with the goal and the history.

    Args:
        max_candidates: The largest number of actions; typing takes at most half of them.
        submitted: Whether typed texts are submitted; False in stores that log typing as `input`.
        scrolls: Whether scroll is an action, as in stores with scrolls.
    """
    scroll: list[Action] = [Scroll()] if scrolls else []
    elements = find_elements(observation["page"])
    inputs = [element.name for element in elements if element.accepts == "type"]
    typing: list[Action] = [
        TypeAndSubmit(name=name, text=phrase, submitted=submitted)
        for name in inputs
        for phrase in candidate_phrases(observation)
    ]
    typing = typing[: max_candidates // 2]
    room = max_candidates - 1 - len(typing) - len(scroll)
    clicks = [element for element in elements if element.accepts == "click"]
    if len(clicks) > room:
        words = set(shopper_words(observation))
        share = [len(words.intersection(words_of(f"{element.name} {element.text}"))) for element in clicks]
        best = sorted(range(len(clicks)), key=lambda index: -share[index])[:room]
        clicks = [clicks[index] for index in sorted(best)]
    return [Terminate(), *(Click(name=element.name) for element in clicks), *typing, *scroll]


def candidate_phrases(observation: Observation) -> list[str]:
    """Lists texts that might be typed: quoted parts of the goal, earlier queries, up to four of the goal's words.

    The words are from the goal's first clause with a content word; longer combinations come first.

    >>> goal: Observation = {"page": "", "history": (), "persona": "", "goal": "Buy a red kettle, cheap.", "step": 0}
    >>> candidate_phrases(goal)
    ['red kettle', 'red', 'kettle']
    """
    goal = observation["goal"]
    typed = [action.get("text", "") for action in past_actions(observation["history"])]
    words = content_words(goal)[:_PHRASE_WORDS]
    choices = (" ".join(choice) for length in range(len(words), 0, -1) for choice in combinations(words, length))
    phrases = [*quoted_parts(goal), *typed, *choices]
    return list(dict.fromkeys(phrase.strip() for phrase in phrases if phrase.strip()))[:_MOST_PHRASES]
