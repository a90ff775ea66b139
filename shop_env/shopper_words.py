"""Extracts a shopper's words from the goal, past rationales and typed texts.

These words reappear on the elements that are clicked next, both in logs and in the demo shop. So the page's candidates,
the discrete view and the baselines use them.
"""

import json
import re
from typing import Any

from replay_sessions.schema import INPUT
from shop_env.observation import History, Observation

_WORD = re.compile(r"[^\W_]+")  # letters and digits of any script
_QUOTED = re.compile(r'"([^"<>]+)"')


def words_of(text: str) -> list[str]:
    """Splits a text into lower-case words of any script, in order; names are split at dots and underscores.

    >>> words_of("search_results.Red_Kettle.view_product")
    ['search', 'results', 'red', 'kettle', 'view', 'product']
    """
    return _WORD.findall(text.lower())


# Words of a goal that are not typed into a search box.
_IDLE_WORDS = frozenset(
    words_of(
        "a am an and are at buy can could find for from get i in is it like looking me my need of on or please price "
        "see show some than that the to want with would you"
    )
)


def quoted_parts(goal: str) -> list[str]:
    """Returns the texts in double quotes.

    >>> quoted_parts('Enter "blue hat" and press "Submit"')
    ['blue hat', 'Submit']
    """
    return [part.strip() for part in _QUOTED.findall(goal) if part.strip()]


def content_words(goal: str) -> list[str]:
    """Returns the words for the wanted product, from the goal's first clause that has any outside of quotes.

    >>> content_words("I am looking for a red kettle, size medium, for less than 40 dollars")
    ['red', 'kettle']
    """
    for clause in re.split(r"[,;:.!?\n]", _QUOTED.sub("", goal)):
        if content := [word for word in words_of(clause) if word not in _IDLE_WORDS]:
            return content
    return []


def past_actions(history: History) -> list[dict[str, Any]]:
    """Returns the actions taken so far, `input` as `type_and_submit`; leaves out actions that are not JSON objects."""
    actions = []
    for step in history:
        try:
            action = json.loads(step["action"])
        except ValueError:
            continue
        if isinstance(action, dict):
            is_input = action.get("type") == INPUT
            actions.append(action | {"type": "type_and_submit"} if is_input else action)
    return actions


def shopper_words(observation: Observation) -> list[str]:
    """Returns the words of the goal, then of each past rationale, then of each typed text."""
    words = words_of(observation["goal"])
    for step in observation["history"]:
        words += words_of(step["rationale"])
    for action in past_actions(observation["history"]):
        words += words_of(str(action.get("text", "")))
    return words
