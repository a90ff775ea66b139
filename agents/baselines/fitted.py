"""Baselines that are fitted to the train split: what they share, and `context_majority` and `ngram`.

    TrainView ─► train_steps ─► FittedBaseline.learn     observation ─► ChoicePage ─► FittedBaseline.weigh ─► shares

The role of an action (choices.py) is counted by context. `context_majority` takes the counts of the most specific
context with enough train steps. `ngram` looks at the last three actions, with Witten-Bell smoothing:

    p(o | c) = (count(c, o) + kinds(c) · p(o | c without its first word)) / (count(c) + kinds(c))

(witten_bell.py). Recurring names are part of a role, so that names are followed too where they mean something;
a page's own names (products) differ in their rank among those of their role.
"""

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np

from agents.adapted import Distribution, DistributionAgent, Floats, TrainView
from agents.baselines.choices import Choice, ChoicePage, Example, Reader
from agents.baselines.witten_bell import Context, WittenBell
from replay_sessions.foundation.errors import BadConfig
from shop_env.observation import Observation

UNIFORM_SHARE = 0.01  # of every distribution, over all choices: no choice on the page has probability 0
MIN_STEPS = 5
ORDER = 3  # actions before the next one
HELD_OUT = 0.1
Labelled = tuple[ChoicePage, int]  # and which of its choices was taken


class FittedBaseline(DistributionAgent):
    """Chooses among the page's choices.

    Args:
        temperature: See DistributionAgent; simulated visits need 1.
        store: What to learn from: its train split.
        skip_first_action: Learn from the steps that are scored, without each session's first.
        inferred: Learn from actions too that the log does not hold and the import inferred.
        max_steps: Learn from at most so many steps, those of a random sample of whole sessions where the split has
            more; None: all. 100,000 steps of pages with 20 elements take two minutes to read and 2 GB of
            memory, and boosting as much again.
    """

    reader: ClassVar[type[Reader]] = Reader
    _last: tuple[Sequence[Observation], list[ChoicePage]] = (), []

    def __init__(
        self,
        store: TrainView | str,
        *,
        temperature: float = 0.0,
        skip_first_action: bool = True,
        inferred: bool = False,
        max_steps: int | None = None,
    ) -> None:
        super().__init__(temperature)
        if max_steps is not None and max_steps < 1:
            raise BadConfig(f"max_steps is {max_steps}; it must be 1 or more")
        self._reader, examples = train_steps(TrainView.of(store), skip_first_action, inferred, max_steps, self.reader)  # type: ignore[arg-type]  # a class is hashable
        self.learn(examples)

    @abstractmethod
    def learn(self, examples: Sequence[Example]) -> None:
        """Takes from the train split what `weigh` needs."""

    def weigh(self, pages: Sequence[ChoicePage]) -> Iterable[Floats]:
        """Computes each page's probabilities of its choices, (choices,), summing to 1; never called without a page."""
        return map(self.weigh_page, pages)

    def weigh_page(self, page: ChoicePage) -> Floats:
        """Does the same for one page, in baselines that take them one by one."""
        raise NotImplementedError

    def pages(self, observations: Sequence[Observation]) -> list[ChoicePage]:
        """Reads observations as pages of choices; the last ones are not read again."""
        if observations is not self._last[0]:
            self._last = observations, [self._reader.read(observation) for observation in observations]
        return self._last[1]

    def distributions(self, observations: Sequence[Observation]) -> list[Distribution]:
        pages = self.pages(observations)
        return [
            (
                page.actions,
                (1 - UNIFORM_SHARE) * shares + UNIFORM_SHARE / len(page.choices),
            )
            for page, shares in zip(pages, self.weigh(pages), strict=True)
        ]


@lru_cache(maxsize=1)  # baselines are ranked together, and reading takes longer than most of them learn
def train_steps(
    store: TrainView, skip_first_action: bool, inferred: bool, max_steps: int | None, reader_class: type[Reader]
) -> tuple[Reader, list[Example]]:
    """Reads the examples of a store's train split; they are held in memory for the next baseline of the same store."""
    reader = reader_class(store)
    options = {"skip_first_action": skip_first_action, "inferred": inferred}
    return reader, list(reader.examples(store, **options, max_steps=max_steps))


def split_labelled(examples: Sequence[Example]) -> tuple[list[Labelled], list[Labelled]]:
    """Splits the steps where one of the page's choices was taken: those to fit to, and the last tenth to tune on."""
    labelled = [(page, chosen) for page, _, chosen, _ in examples if chosen is not None]
    end = int((1 - HELD_OUT) * len(labelled))
    return labelled[:end] or labelled, labelled[end:]


def divide_shares(labels: Sequence[str], shares: Iterable[float]) -> Floats:
    """Divides the share of each label, in the order of their first appearance, among those that carry it.

    >>> divide_shares(["click a", "click b", "click a"], [0.5, 0.5]).tolist()
    [0.25, 0.5, 0.25]
    """
    per_label = {label: share / labels.count(label) for label, share in zip(dict.fromkeys(labels), shares, strict=True)}
    return np.array([per_label[label] for label in labels])


class ContextMajority(FittedBaseline):
    """The most frequent role by kind of page and last action, backing off to the kind of page, and to all steps."""

    def learn(self, examples: Sequence[Example]) -> None:
        self._counts: defaultdict[Context, Counter[str]] = defaultdict(Counter)
        for page, role, _, _ in examples:
            for context in _contexts(page):
                self._counts[context][role] += 1

    def weigh_page(self, page: ChoicePage) -> Floats:
        """Computes the share of each role, divided evenly among the choices that have it."""
        for context in _contexts(page):
            counts = self._counts.get(context, Counter())
            shares = np.array([counts[role] for role in dict.fromkeys(page.roles)], dtype=float)
            if shares.sum() >= MIN_STEPS:
                return divide_shares(page.roles, shares / shares.sum())
        return np.full(len(page.choices), 1 / len(page.choices))


def _contexts(page: ChoicePage) -> list[Context]:
    """Lists the contexts of a page, from the most specific to that of all steps."""
    return [(page.kind, *page.past[-1:]), (page.kind,), ()]


class Ngram(FittedBaseline):
    """An n-gram model over the roles of actions, and over ranks within a role."""

    def learn(self, examples: Sequence[Example]) -> None:
        self._roles, self._ranks = WittenBell(), WittenBell()
        for page, role, chosen, _ in examples:
            self._roles.add(_last_roles(page), role)
            if chosen is not None:
                self._ranks.add((role,), _rank(page.choices[chosen]))

    def weigh_page(self, page: ChoicePage) -> Floats:
        roles = np.array(page.roles)
        shares = np.zeros(len(roles))
        offered = list(dict.fromkeys(page.roles))
        for role, share in zip(offered, self._roles.among(_last_roles(page), offered), strict=True):
            indices = np.flatnonzero(roles == role)
            ranks = [_rank(page.choices[index]) for index in indices]
            shares[indices] = share * divide_shares(ranks, self._ranks.among((role,), list(dict.fromkeys(ranks))))
        return shares


def _last_roles(page: ChoicePage) -> Context:
    return (*("start",) * ORDER, *page.past)[-ORDER:]


def _rank(choice: Choice) -> str:
    return choice.traits[1]
