"""How like the logged name or text wrong guesses are, on a store: what the similarity term pays who is wrong.

    a wrong click      another element of the page, each as likely as any other
    a wrong text       another phrase that the shopper has given, likewise
    the first element, an invented name      as policies.py makes them

A figure of similarity is worth something only from τ on, so it is kept whole: `Guess.at(τ)` cuts it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from agents.scored_steps import ScoredStep
from benchmarks.hacking.policies import first_element, invented_name
from replay_sessions.schema import Action, Click, TypeAndSubmit
from shop_env.candidates import candidate_actions
from shop_env.replies import Reply, parse_reply
from shop_env.reward import rouge_l

__all__ = ["GUESSES", "Chances", "Guess", "measure_guesses"]

GUESSES = ("wrong_click", "wrong_text", "first", "invented")


class Chances(msgspec.Struct, frozen=True):
    """Of a guess where its type is right.

    Attributes:
        right: The chance that it is the logged action.
        near: The chance that it is not, and so similar that it is paid.
        similarity: How similar such a guess is, on average; 0 where there is none.
    """

    right: float
    near: float
    similarity: float


@dataclass
class Guess:
    """The similarities of a guess, by how often they came up (each step counts 1), and how often it was right."""

    steps: float = 0.0
    right: float = 0.0
    wrong: dict[float, float] = field(default_factory=dict)

    def add(self, weight: float, similarity: float, *, right: bool) -> None:
        """Notes one possible guess."""
        self.steps += weight
        if right:
            self.right += weight
        else:
            self.wrong[similarity] = self.wrong.get(similarity, 0.0) + weight

    def at(self, threshold: float, right: float | None = None) -> Chances:
        """With this τ; `right` in place of how often it was right, the wrong ones staying as they are.

        >>> guess = Guess()
        >>> guess.add(1.0, 0.5, right=False)
        >>> guess.add(3.0, 0.75, right=False)
        >>> guess.at(0.7, right=0.5)
        Chances(right=0.5, near=0.375, similarity=0.75)
        """
        wrong = sum(self.wrong.values())
        paid = {similarity: weight for similarity, weight in self.wrong.items() if similarity >= max(threshold, 1e-9)}
        near = sum(paid.values())
        is_right = (self.right / self.steps if self.steps else 0.0) if right is None else right
        return Chances(
            is_right,
            (1 - is_right) * near / wrong if wrong else 0.0,
            sum(similarity * weight for similarity, weight in paid.items()) / near if near else 0.0,
        )


def measure_guesses(steps: Iterable[ScoredStep]) -> dict[str, Guess]:
    """By the names of GUESSES, over the steps whose logged action is a click or typing that the log knows."""
    found = {name: Guess() for name in GUESSES}
    for step in steps:
        logged, candidates = step.logged, candidate_actions(step.observation)
        if isinstance(logged, Click) and logged.name:
            names = [action.name for action in candidates if isinstance(action, Click) and action.name != logged.name]
            for name in names:
                found["wrong_click"].add(1 / len(names), rouge_l(name, logged.name), right=False)
            _note_replies(
                found, {"first": first_element(step.observation), "invented": invented_name(step.observation)}, logged
            )
        elif isinstance(logged, TypeAndSubmit) and logged.text:
            texts = [a.text for a in candidates if isinstance(a, TypeAndSubmit) and a.text != logged.text]
            for text in texts:
                found["wrong_text"].add(1 / len(texts), rouge_l(text, logged.text), right=False)
    return found


def _note_replies(found: Mapping[str, Guess], replies: Mapping[str, str], logged: Click) -> None:
    for guess, text in replies.items():
        reply = parse_reply(text)
        assert isinstance(reply, Reply), "trivial policies write what can be read"
        found[guess].add(1.0, _similarity(reply.action, logged), right=reply.action == Click(name=logged.name))


def _similarity(action: Action, logged: Click) -> float:
    return rouge_l(action.name, logged.name) if isinstance(action, Click) else 0.0
