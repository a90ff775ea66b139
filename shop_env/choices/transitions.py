"""Counts of transitions: how often each choice followed the same page and the same last clicks, cross-fitted by users.

    train sessions ─► TransitionCounts ─► the logarithm of each choice's share, for each of CONTEXTS

    share(a | c) = (count(c, a) + PULL · share(a | heading)) / (count(c) + PULL)
    share(a | heading) = (count(heading, a) + 1) / (count(heading) + choices on the page)

A model that learns from counts of its own train rows trusts them too much. So users are divided into folds, and the
counts for a row of the train split leave out the fold of its user.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import log
from typing import Any
from zlib import crc32

from replay_sessions.schema import Session, reply_action
from shop_env.marks import remove_marks
from shop_env.reward.click_types import click_type_of

CONTEXTS = ("heading", "heading, last product", "heading, product before last", "heading, last action")
FOLDS = 5
PULL = 10.0
Context = tuple[str, ...]
PastAction = Mapping[str, Any]
_HEADING = re.compile(r"<h1\b[^>]*>(.*?)</h1>", re.DOTALL)
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_ALL = ""  # the outcome that counts every action of a context


def heading_of(page: str) -> str:
    """Returns the HTML of a page's heading without marks, or else its title; "" if it has neither."""
    heading = _HEADING.search(page) or _TITLE.search(page)
    return remove_marks(heading[1]) if heading else ""


def last_products(past: Sequence[PastAction]) -> tuple[str, str]:
    """Returns the names of the last two products that were clicked, the earlier one first; "" where there is none."""
    products = (action["name"] for action in reversed(past) if click_type_of(action.get("name", "")) == "product_link")
    last, before_last = (*islice(products, 2), "", "")[:2]
    return before_last, last


def outcome_of(action: PastAction) -> str:
    """Returns what an action is counted as: its type and name, whatever text is typed."""
    return f"{action.get('type', '')} {action.get('name', '')}"


class TransitionCounts:
    """Counts of the actions of a train split by context.

    Args:
        sessions: Sessions, each with the indices of the steps to count.
    """

    def __init__(self, sessions: Iterable[tuple[Session, Sequence[int]]]) -> None:
        self._counts: list[dict[Context, Counter[str]]] = [{} for _ in range(FOLDS)]
        for session, learnt in sessions:
            actions = [reply_action(step.action) for step in session.steps]
            counts = self._counts[_fold(session.user_id)]
            for index in learnt:
                for context in _contexts(heading_of(session.steps[index].page), actions[:index]):
                    counter = counts.setdefault(context, Counter())
                    counter.update((outcome_of(actions[index]), _ALL))
        self._total: dict[Context, Counter[str]] = {}
        for fold in self._counts:
            for context, counter in fold.items():
                self._total.setdefault(context, Counter()).update(counter)

    @classmethod
    def restored(cls, total: Iterable[tuple[Context, dict[str, int]]]) -> "TransitionCounts":
        """Returns counts that are the same outside of the train split as those with this `total`."""
        counts = cls(())
        counts._total = {context: Counter(counter) for context, counter in total}
        return counts

    @property
    def total(self) -> list[tuple[Context, dict[str, int]]]:
        """The counts of all users."""
        return [(context, dict(counter)) for context, counter in self._total.items()]

    def log_shares(
        self, heading: str, past: Sequence[PastAction], outcomes: Sequence[str], user_id: str | None
    ) -> list[tuple[float, ...]]:
        """Computes the log-shares of each outcome in each context, one tuple (CONTEXTS) for each outcome.

        Args:
            outcomes: The outcomes of the page's choices (`outcome_of`).
            user_id: The user of a row of the train split, whose fold is left out; None outside of the train split.
        """
        of_fold = {} if user_id is None else self._counts[_fold(user_id)]
        none = Counter[str]()
        tables = [(self._total.get(context, none), of_fold.get(context, none)) for context in _contexts(heading, past)]
        sizes = [total[_ALL] - fold[_ALL] for total, fold in tables]
        shares = []
        for outcome in outcomes:
            counts = [total[outcome] - fold[outcome] for total, fold in tables]
            popularity = (counts[0] + 1) / (sizes[0] + len(outcomes))
            pairs = zip(counts[1:], sizes[1:], strict=True)
            by_context = ((count + PULL * popularity) / (size + PULL) for count, size in pairs)
            shares.append((log(popularity), *map(log, by_context)))
        return shares


def _contexts(heading: str, past: Sequence[PastAction]) -> list[Context]:
    before_last, last = last_products(past)
    last_action = outcome_of(past[-1]) if past else ""
    return [(heading,), (heading, "last", last), (heading, "before", before_last), (heading, "action", last_action)]


def _fold(user_id: str) -> int:
    return crc32(user_id.encode("utf-8", "surrogatepass")) % FOLDS
