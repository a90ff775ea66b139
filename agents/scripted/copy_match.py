"""`copy_match`: types or clicks what best matches the words already given. No learning, no model.

Words the shopper has given (goal, typed texts, rationales) reappear on the elements that are clicked next, in logs and
in the demo shop alike: this measures how far copying alone goes.
"""

from collections import Counter
from collections.abc import Iterable

from replay_sessions.elements import Element, find_elements
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit
from shop_env.given_words import given_words, past_actions, quoted_parts, telling_words, words_of
from shop_env.observation import Observation
from shop_env.replies import format_reply

__all__ = ["CopyMatchAgent"]


class CopyMatchAgent:
    """Types the goal into an input it has not used; else clicks the best-matching element it has not clicked.

    The match of an element is the summed weight of the given words in its name and text, where a word weighs 1/n if n
    elements of the page carry it (a word on every product tells none apart). Ties go to the shorter element, then to
    the earlier one. Nothing matches: terminate.
    """

    def reset(self, *, seed: int | None = None) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation) -> str:
        action = self._choose(observation)
        said = "I see nothing more of what I want." if isinstance(action, Terminate) else "This fits what I want."
        return format_reply(said, action)

    def _choose(self, observation: Observation) -> Action:
        elements = find_elements(observation["page"])
        past = past_actions(observation["history"])
        goal = observation["goal"]
        wanted = quoted_parts(goal) or [" ".join(telling_words(goal))]
        typed_into = {action.get("name") for action in past if action.get("type") == "type_and_submit"}
        inputs = [element for element in elements if element.accepts == "type" and element.name not in typed_into]
        if inputs and wanted[0]:
            return TypeAndSubmit(name=inputs[0].name, text=wanted[len(typed_into) % len(wanted)])
        clicked = {action.get("name") for action in past if action.get("type") == "click"}
        clickable = [element for element in elements if element.accepts == "click" and element.name not in clicked]
        best = _best_match(clickable, given_words(observation))
        return Click(name=best.name) if best is not None else Terminate()


def _best_match(elements: list[Element], words: Iterable[str]) -> Element | None:
    given = set(words)
    element_words = [set(words_of(f"{element.name} {element.text}")) for element in elements]
    carriers = Counter(word for words in element_words for word in words)
    best, best_score = None, (0.0, 0)
    for element, own in zip(elements, element_words, strict=True):
        score = (sum(1 / carriers[word] for word in sorted(own & given)), -len(own))
        if score[0] > 0 and (best is None or score > best_score):
            best, best_score = element, score
    return best
