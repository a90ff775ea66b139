"""Which sessions, or which single steps of them, make a batch: the same for a seed and a step, whatever ran before.

SFT takes whole sessions (Shop-R1, section 4.1). GRPO takes whole sessions too, all steps of which share one reading of
their pages, or single ⟨context, next action⟩ pairs as in the papers, uniformly or balanced over action types.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import Literal, TypeVar

from replay_sessions.errors import BadConfig
from replay_sessions.schema import reply_action
from train.tokens import ReplySpan, SessionTokens

__all__ = ["Balance", "SessionPlan", "SessionSteps", "StepPlan"]

Balance = Literal["uniform", "balanced"]
# Shop-R1, section 4.1: click and type_and_submit each occur about 10% more frequently than terminate.
BALANCED = {"click": 1.1, "type_and_submit": 1.1, "terminate": 1.0}

T = TypeVar("T")
SessionSteps = tuple[SessionTokens, list[ReplySpan]]  # steps of one session, in their order


class SessionPlan:
    """Batches of whole sessions: epoch after epoch of a shuffle that depends on `key` and the epoch alone.

    A batch has at most `size` sessions and `max_tokens` tokens (at least one session), so that long sessions make small
    batches. Batches do not reach across epochs.

    Args:
        rank, ranks: Of `ranks` processes that share each batch, this is number `rank` (from 0).
    """

    def __init__(
        self, trunks: Sequence[SessionTokens], size: int, max_tokens: int, key: str, *, rank: int = 0, ranks: int = 1
    ) -> None:
        self._trunks, self._size, self._max_tokens, self._key = trunks, size, max_tokens, key
        self._share = slice(rank, None, ranks)
        self._batches: list[list[int]] = []
        self._epochs = self._first_epoch = 0

    @property
    def batches_per_epoch(self) -> int:
        """In the first epoch; where tokens bound the batches, another may have a few more or less."""
        if not self._epochs:
            self._plan_epoch()
        return self._first_epoch

    def batch(self, step: int) -> list[SessionSteps]:
        """The sessions of batch `step` (from 0) with all their steps."""
        while len(self._batches) <= step:
            self._plan_epoch()
        return [(self._trunks[index], self._trunks[index].replies) for index in self._batches[step][self._share]]

    def _plan_epoch(self) -> None:
        batch: list[int] = []
        tokens = 0
        for index in _shuffled(range(len(self._trunks)), f"{self._key} epoch {self._epochs}"):
            length = len(self._trunks[index].tokens)
            if batch and (len(batch) == self._size or tokens + length > self._max_tokens):
                self._batches.append(batch)
                batch, tokens = [], 0
            batch.append(index)
            tokens += length
        self._batches.append(batch)
        self._first_epoch = self._first_epoch or len(self._batches)
        self._epochs += 1


class StepPlan:
    """Batches of `size` single steps, those of one session beside each other.

    Args:
        trunks: With the steps that may be drawn as their replies.
        balance: `uniform` takes every step once an epoch. `balanced` draws the type of each by the papers' shares, then
            the next step of that type; rare types come round more often, and a step that comes twice in one batch is
            taken once.
        rank, ranks: As in SessionPlan.
    """

    def __init__(
        self, trunks: Sequence[SessionTokens], size: int, balance: Balance, key: str, *, rank: int = 0, ranks: int = 1
    ) -> None:
        self._trunks, self._size = trunks, size
        self._share = slice(rank, None, ranks)
        pairs = [(index, place) for index, trunk in enumerate(trunks) for place in range(len(trunk.replies))]
        self._stream = _epochs(pairs, key) if balance == "uniform" else _balanced(self._of_types(pairs), key)
        self._drawn: list[tuple[int, int]] = []

    def pairs(self, count: int) -> list[tuple[int, int]]:
        """The first `count` steps as (trunk, place among its replies): `size` after `size` of them are the batches."""
        self._drawn += islice(self._stream, max(0, count - len(self._drawn)))
        return self._drawn[:count]

    def batch(self, step: int) -> list[SessionSteps]:
        """The sessions of batch `step` (from 0) with those of their steps that are in it."""
        places = defaultdict(set)
        for index, place in self.pairs((step + 1) * self._size)[step * self._size :]:
            places[index].add(place)
        return [
            (self._trunks[index], [self._trunks[index].replies[place] for place in sorted(places[index])])
            for index in sorted(places)[self._share]
        ]

    def _of_types(self, pairs: Sequence[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
        of_type: dict[str, list[tuple[int, int]]] = {name: [] for name in BALANCED}
        for index, place in pairs:
            of_type[reply_action(self._trunks[index].replies[place].action)["type"]].append((index, place))
        if missing := [name for name, found in of_type.items() if not found]:
            raise BadConfig(
                f"balance = 'balanced', but no training step is a {' or a '.join(missing)}; take balance = 'uniform'."
            )
        return of_type


def _balanced(of_type: dict[str, list[tuple[int, int]]], key: str) -> Iterator[tuple[int, int]]:
    streams = {name: _epochs(found, f"{key} {name}") for name, found in of_type.items()}
    draw = Random(f"{key} types")
    while True:
        (name,) = draw.choices(list(BALANCED), list(BALANCED.values()))
        yield next(streams[name])


def _epochs(items: Sequence[tuple[int, int]], key: str) -> Iterator[tuple[int, int]]:
    epoch = 0
    while True:
        yield from _shuffled(items, f"{key} epoch {epoch}")
        epoch += 1


def _shuffled(items: Sequence[T], key: str) -> list[T]:
    order = list(items)
    Random(key).shuffle(order)
    return order
