"""The base class of baselines that are fitted to the train split, and two of them: `context_majority` and `ngram`.

    TrainView ─► train_steps ─► FittedBaseline.learn     observation ─► ChoicePage ─► FittedBaseline.weigh ─► shares

Both count the roles of actions (shop_env/choices) by context. `context_majority` takes the counts of the most specific
context with enough train steps. `ngram` counts after the last three roles, with Witten-Bell smoothing (witten_bell.py):

    p(o | c) = (count(c, o) + kinds(c) · p(o | c without its first word)) / (count(c) + kinds(c))

Recurring names are part of a role, so the counts distinguish them. Names of products do not recur: `ngram`
distinguishes them by their rank within the role.
"""

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np

from agents.adapted import Distribution, DistributionAgent, Floats
from agents.baselines.witten_bell import Context, WittenBell
from shop_env.choices.reader import Choice, ChoicePage, Example, Reader
from shop_env.observation import Observation
from shop_env.train_view import TrainView

MAX_STEPS = 100_000
UNIFORM_SHARE = 0.01  # of every distribution, so that no choice on the page has probability 0
MIN_STEPS = 5
ORDER = 3  # actions before the next one
HELD_OUT = 0.1
Labelled = tuple[ChoicePage, int]  # a page and the index of the choice that was taken


class FittedBaseline(DistributionAgent):
    """An agent that is fitted to the train split and chooses among the page's choices.

    Args:
        store: The store to learn from: its train split.
        temperature: See DistributionAgent; simulated visits need 1.
        first_action: Learn from the first step of each session too.
        inferred: Learn from inferred actions too.
        max_steps: The maximum number of steps to learn from; None means all. If the split has more, a random sample of
            whole sessions is read. 100,000 steps of pages with 20 elements take two minutes to read and 2 GB of memory;
            boosting takes as much again.
    """

    reader: ClassVar[type[Reader]] = Reader
    uniform_share = UNIFORM_SHARE
    _pages: tuple[Sequence[Observation], list[ChoicePage]] = (), []

    def __init__(
        self,
        store: TrainView | str,
        *,
        temperature: float = 0.0,
        first_action: bool = False,
        inferred: bool = False,
        max_steps: int | None = MAX_STEPS,
    ) -> None:
        super().__init__(temperature)
        self._reader, examples = train_steps(TrainView.of(store), first_action, inferred, max_steps, self.reader)  # type: ignore[arg-type]  # a class is hashable
        self.learn(examples)

    @abstractmethod
    def learn(self, examples: Sequence[Example]) -> None:
        """Fits the model to the examples of the train split."""

    def weigh(self, pages: Sequence[ChoicePage]) -> Iterable[Floats]:
        """Computes the probabilities of each page's choices, (choices,), summing to 1; `pages` is never empty."""
        return map(self.weigh_page, pages)

    def weigh_page(self, page: ChoicePage) -> Floats:
        """Computes the probabilities of one page's choices, for baselines that do not override `weigh`."""
        raise NotImplementedError

    def pages(self, observations: Sequence[Observation]) -> list[ChoicePage]:
        """Reads observations as pages of choices, and caches the pages of the last call."""
        if observations is not self._pages[0]:
            self._pages = observations, [self._reader.read(observation) for observation in observations]
        return self._pages[1]

    def distributions(self, observations: Sequence[Observation]) -> list[Distribution]:
        pages = self.pages(observations)
        return [
            (
                page.actions,
                (1 - self.uniform_share) * shares + self.uniform_share / len(page.choices),
            )
            for page, shares in zip(pages, self.weigh(pages), strict=True)
        ]


@lru_cache(maxsize=1)  # baselines are ranked together, and reading takes longer than fitting most of them
def train_steps(
    store: TrainView, first_action: bool, inferred: bool, max_steps: int | None, reader_class: type[Reader]
) -> tuple[Reader, list[Example]]:
    """Reads the examples of a store's train split, and caches them for the next baseline of the same store."""
    reader = reader_class(store, first_action=first_action, inferred=inferred, max_steps=max_steps)
    return reader, list(reader.examples(store))


def split_labelled(examples: Sequence[Example]) -> tuple[list[Labelled], list[Labelled]]:
    """Splits the steps at which a choice of the page was taken into steps to fit to, and the last tenth to tune on."""
    labelled = [(page, chosen) for page, _, chosen, _ in examples if chosen is not None]
    end = int((1 - HELD_OUT) * len(labelled))
    return labelled[:end] or labelled, labelled[end:]


def divide_shares(labels: Sequence[str], shares: Iterable[float]) -> Floats:
    """Divides the share of each label evenly among its occurrences in `labels`.

    Args:
        shares: The shares of the distinct labels, in the order of their first appearance.

    >>> divide_shares(["click a", "click b", "click a"], [0.5, 0.5]).tolist()
    [0.25, 0.5, 0.25]
    """
    per_label = {label: share / labels.count(label) for label, share in zip(dict.fromkeys(labels), shares, strict=True)}
    return np.array([per_label[label] for label in labels])


class ContextMajority(FittedBaseline):
    """The most frequent role by kind of page and last action, backing off to the kind of page and to all steps."""

    def learn(self, examples: Sequence[Example]) -> None:
        self._counts: defaultdict[Context, Counter[str]] = defaultdict(Counter)
        for page, role, _, _ in examples:
            for context in _contexts(page):
                self._counts[context][role] += 1

    def weigh_page(self, page: ChoicePage) -> Floats:
        """Computes the share of each role, divided evenly among the choices of the role."""
        for context in _contexts(page):
            counts = self._counts.get(context, Counter())
            shares = np.array([counts[role] for role in dict.fromkeys(page.roles)], dtype=float)
            if shares.sum() >= MIN_STEPS:
                return divide_shares(page.roles, shares / shares.sum())
        return np.full(len(page.choices), 1 / len(page.choices))


def _contexts(page: ChoicePage) -> list[Context]:
    """Returns the contexts of a page, from the most specific to the context of all steps."""
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
