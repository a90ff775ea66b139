"""What is logged, and how near wrong guesses come to it: mixes of actions, of the papers' logs and of a store's.

What the similarity term pays a wrong guess is how similar it is to the logged name or text, on a store:

    a wrong click      another element of the page, each as likely as any other
    a wrong text       another phrase that the shopper has mentioned, likewise
    the first element, an invented name      as policies.py makes them

A similarity is paid only from τ on, so all similarities are kept: `Guess.at(τ)` applies the threshold.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from benchmarks.studies.reward_hacking.policies import first_element, get_action, invented_name
from replay_sessions.schema import Action, Click, TypeAndSubmit, reply_action
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


TYPES = ("click", "type_and_submit", "terminate")


class Mix(msgspec.Struct, frozen=True):
    """Counts of each type of action."""

    name: str
    click: int
    type_and_submit: int
    terminate: int

    @property
    def steps(self) -> int:
        return self.click + self.type_and_submit + self.terminate

    @property
    def terminate_share(self) -> float:
        """b: the share of steps at which the shopper terminates.

        >>> round(PAPER_MIXES[0].terminate_share, 4)
        0.2725
        """
        return self.share("terminate")

    @property
    def click_share(self) -> float:
        """q: the share of clicks among the steps at which the shopper does not terminate.

        >>> round(PAPER_MIXES[0].click_share, 4)
        0.5048
        """
        return self.click / (self.click + self.type_and_submit)

    @property
    def f1_of_always_terminate(self) -> float:
        """The macro-F1 of always terminating: F1 is 2b / (1 + b) for terminate and 0 for the other two.

        >>> round(PAPER_MIXES[0].f1_of_always_terminate, 4)
        0.1428
        """
        b = self.terminate_share
        return 2 * b / (1 + b) / sum(self.share(kind) > 0 for kind in TYPES)

    def share(self, kind: str) -> float:
        """The share of a type."""
        count: int = getattr(self, kind)
        return count / self.steps


# Shop-R1, section 4.1; OPeRA, table 2 (the first action of each session left out).
PAPER_MIXES = (
    Mix("Shop-R1 test", 690, 677, 512),
    Mix("Shop-R1 train", 64_578, 68_000, 44_371),
    Mix("OPeRA-test", 786, 76, 40),
)

# Shop-R1, tables 2 and 4, 3B: exact accuracy and type F1, as shares, on the first of these mixes.
PAPER_RESULTS = {
    "Shop-R1": (0.2772, 0.3128),
    "without the reward scale": (0.2783, 0.1170),
    "with a binary action reward": (0.2741, 0.1211),
    "SFT": (0.1676, 0.2452),
}


def count_mix(actions: Iterable[Action], name: str) -> Mix:
    """The mix of logged actions."""
    counts = Counter(reply_action(action)["type"] for action in actions)
    return Mix(name, *(counts[kind] for kind in TYPES))
