"""The words an agent has been given: the goal, and what the shopper has typed and said so far."""

import json
import re

from shop_env.observation import Observation, PastStep

__all__ = ["past_actions", "phrases", "seen_words", "words_of"]

QUOTED = re.compile(r'"([^"<>]+)"')
WORD = re.compile(r"[^\W_]+")  # letters and digits of any script; names are split at dots and underscores


def words_of(text: str) -> list[str]:
    """Lower-case words in order.

    >>> words_of("search_results.Red_Kettle.view_product")
    ['search', 'results', 'red', 'kettle', 'view', 'product']
    """
    return WORD.findall(text.lower())


PLAIN_WORDS = frozenset(  # say nothing of what is wanted
    words_of(
        "a am an and are at buy can could find for from get give i in is it like looking m me my need of on or please "
        "purchase search see show some something that the to want with would you"
    )
)


def phrases(goal: str) -> list[str]:
    """What to type for a goal: its quoted parts, or else the telling words of its first clause.

    >>> phrases('Enter "blue hat" and press "Submit"')
    ['blue hat', 'Submit']
    >>> phrases("I am looking for a red kettle, size medium, for less than 40 dollars")
    ['red kettle']
    """
    quoted = [found.strip() for found in QUOTED.findall(goal) if found.strip()]
    if quoted:
        return quoted
    for clause in re.split(r"[,;:.!?\n]", goal):
        if telling := [word for word in words_of(clause) if word not in PLAIN_WORDS]:
            return [" ".join(telling)]
    return []


def past_actions(history: tuple[PastStep, ...]) -> list[dict[str, str]]:
    """The actions taken so far, as dictionaries; one that cannot be read is left out."""
    actions = []
    for step in history:
        try:
            action = json.loads(step["action"])
        except ValueError:
            continue
        if isinstance(action, dict):
            actions.append(action)
    return actions


def seen_words(observation: Observation) -> list[str]:
    """The words of the goal, then of each past rationale and typed text."""
    words = words_of(observation["goal"])
    for step in observation["history"]:
        words += words_of(step["rationale"])
    for action in past_actions(observation["history"]):
        words += words_of(str(action.get("text", "")))
    return words
