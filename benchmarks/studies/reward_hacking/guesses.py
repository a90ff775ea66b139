"""How similar wrong guesses are to the logged name or text, on a store: what the similarity term pays a wrong guess.

    a wrong click      another element of the page, each as likely as any other
    a wrong text       another phrase that the shopper has mentioned, likewise
    the first element, an invented name      as policies.py makes them

A similarity is paid only from τ on, so all similarities are kept: `Guess.at(τ)` applies the threshold.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from benchmarks.studies.reward_hacking.policies import first_element, get_action, invented_name
from replay_sessions.schema import Action, Click, TypeAndSubmit
from shop_env.candidates import candidate_actions
from shop_env.evaluation.scored_steps import ScoredStep
from shop_env.reward import rouge_l

GUESSES = ("wrong_click", "wrong_text", "first", "invented")


class Chances(msgspec.Struct, frozen=True):
    """Of a guess whose type is right.

    Attributes:
        right: The chance that it is the logged action.
        near: The chance that it is not, but similar enough to be paid.
        similarity: The mean similarity of such a guess; 0 where there is none.
    """

    right: float
    near: float
    similarity: float


@dataclass
class Guess:
    """The similarities of a guess with their weights (each step weighs 1), and how often it was right."""

    steps: float = 0.0
    right: float = 0.0
    wrong: defaultdict[float, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, weight: float, similarity: float, *, right: bool) -> None:
        """Counts one possible guess."""
        self.steps += weight
        if right:
            self.right += weight
        else:
            self.wrong[similarity] += weight

    def at(self, threshold: float, right: float | None = None) -> Chances:
        """With this τ.

        Args:
            right: In place of the measured chance of being right; wrong guesses stay as they are.

        >>> guess = Guess()
        >>> guess.add(1.0, 0.5, right=False)
        >>> guess.add(3.0, 0.75, right=False)
        >>> guess.at(0.7, right=0.5)
        Chances(right=0.5, near=0.375, similarity=0.75)
        """
        wrong = sum(self.wrong.values())
        paid = {similarity: weight for similarity, weight in self.wrong.items() if similarity >= max(threshold, 1e-9)}
        near = sum(paid.values())
        if right is None:
            right = self.right / self.steps if self.steps else 0.0
        return Chances(
            right,
            (1 - right) * near / wrong if wrong else 0.0,
            sum(similarity * weight for similarity, weight in paid.items()) / near if near else 0.0,
        )


def measure_guesses(steps: Iterable[ScoredStep]) -> dict[str, Guess]:
    """By the names of GUESSES, over the steps whose logged action is a click or typing that the log names."""
    guesses = {name: Guess() for name in GUESSES}
    for step in steps:
        logged = step.logged
        target = _target_text(logged)
        if not target:
            continue
        candidates = (action for action in candidate_actions(step.observation) if type(action) is type(logged))
        others = [text for text in map(_target_text, candidates) if text != target]
        wrong = guesses["wrong_click" if isinstance(logged, Click) else "wrong_text"]
        for text in others:
            wrong.add(1 / len(others), rouge_l(text, target), right=False)
        if isinstance(logged, Click):
            for name, policy in (("first", first_element), ("invented", invented_name)):
                action = get_action(policy, step.observation)
                similarity = rouge_l(action.name, target) if isinstance(action, Click) else 0.0
                guesses[name].add(1.0, similarity, right=action == Click(name=target))
    return guesses


def _target_text(action: Action) -> str:
    """The clicked name or the typed text; "" for a terminate action."""
    return action.name if isinstance(action, Click) else action.text if isinstance(action, TypeAndSubmit) else ""
