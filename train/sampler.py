"""Which sessions, or which single steps of them, make a batch: it depends on seed and step only, so that runs resume.

SFT takes whole sessions (Shop-R1, section 4.1). GRPO takes whole sessions too, all steps of which share one pass over
their pages, or so many ⟨context, next action⟩ pairs as in the papers: drawn one by one, uniformly or balanced over
action types.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from random import Random
from typing import Literal, TypeVar

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import reply_action
from train.tokens import ReplySpan, SessionTokens

Balance = Literal["uniform", "balanced"]
# Shop-R1, section 4.1: click and type_and_submit each occur about 10% more frequently than terminate.
BALANCED = {"click": 1.1, "type_and_submit": 1.1, "terminate": 1.0}

T = TypeVar("T")
Share = tuple[int, int]  # a process's number, from 0, and how many share each batch
ALL = (0, 1)
SessionSteps = tuple[SessionTokens, list[ReplySpan]]  # steps of one session, in their order


def split_batches(
    items: Iterable[T], cost: Callable[[Sequence[T], T], Sequence[int]], *limits: int
) -> Iterator[list[T]]:
    """Splits items, in their order, into batches of at least one item whose costs stay within the limits.

    Args:
        cost: Of the batch so far and an item: what the item adds to it, one number for each limit.

    >>> list(split_batches([3, 4, 9, 1], lambda batch, item: (1, item), 2, 8))
    [[3, 4], [9], [1]]
    """
    batch: list[T] = []
    totals: Sequence[int] = [0] * len(limits)
    for item in items:
        sums = [total + own for total, own in zip(totals, cost(batch, item), strict=True)]
        if batch and any(own > limit for own, limit in zip(sums, limits, strict=True)):
            yield batch
            batch = []
            sums = [*cost(batch, item)]
        batch.append(item)
        totals = sums
    if batch:
        yield batch


def deal(costs: Sequence[int], number: int, processes: int) -> list[int]:
    """The indices of one process's items, in their order, each dealt to the process with the least cost so far.

    The largest come first (LPT, Graham 1969): the process with the most, for which the others wait, has little more
    than the mean.
    """
    loads, own = [0] * processes, []
    for index in sorted(range(len(costs)), key=costs.__getitem__, reverse=True):
        least = loads.index(min(loads))
        loads[least] += costs[index]
        if least == number:
            own.append(index)
    return sorted(own)


def own_share(batch: Sequence[SessionSteps], share: Share) -> list[SessionSteps]:
    """One process's sessions of a batch, in their order, dealt by their tokens."""
    return [batch[index] for index in deal([replies[-1].end for _, replies in batch], *share)]


class SessionPlan:
    """Batches of whole sessions: epoch after epoch of a shuffle that depends on `key` and the epoch alone.

    A batch has at most `size` sessions, all trunks of each, and `max_tokens` tokens (at least one session), so that
    long sessions make small batches. A session counts the tokens of its longest trunk, so that a context whose steps
    are trunks of their own has no smaller batches. Batches do not reach across epochs.

    Args:
        share: Which process this is, of how many that deal each batch's sessions out by their tokens.
    """

    def __init__(
        self, trunks: Sequence[SessionTokens], size: int, max_tokens: int, key: str, share: Share = ALL
    ) -> None:
        by_session = defaultdict(list)
        for trunk in trunks:
            by_session[trunk.session_id].append(trunk)
        self._sessions = list(by_session.values())
        self._size, self._max_tokens, self._key, self._share = size, max_tokens, key, share
        self._epochs = count()
        self._batches: list[list[int]] = []

    @property
    def batches_per_epoch(self) -> int:
        """In the first epoch; where tokens limit the batches, another may have a few more or less."""
        return len(self._plan_epoch(0))

    def batch(self, step: int, first_replies: int | None = None) -> list[SessionSteps]:
        """The sessions of batch `step` (from 0) with all their steps, or the first so many of each."""
        while len(self._batches) <= step:
            self._batches += self._plan_epoch(next(self._epochs))
        sessions = (self._sessions[index] for index in self._batches[step])
        return own_share([steps for session in sessions for steps in _first_steps(session, first_replies)], self._share)

    def _plan_epoch(self, epoch: int) -> list[list[int]]:
        order = _shuffled(range(len(self._sessions)), f"{self._key} epoch {epoch}")
        lengths = [max(len(trunk.tokens) for trunk in session) for session in self._sessions]
        batches = split_batches(order, lambda _, index: (1, lengths[index]), self._size, self._max_tokens)
        return list(batches) or [[]]


def _first_steps(session: Sequence[SessionTokens], number: int | None) -> list[SessionSteps]:
    """The trunks of a session with the first `number` of its steps, those without such a step left out."""
    first = sorted(reply.step_index for trunk in session for reply in trunk.replies)[:number]
    steps = [(trunk, [reply for reply in trunk.replies if reply.step_index in first]) for trunk in session]
    return [(trunk, replies) for trunk, replies in steps if replies]


class StepPlan:
    """Batches of `size` single steps, those of one session beside each other.

    Args:
        trunks: With the steps that may be drawn as their replies.
        balance: `uniform` takes every step once an epoch. `balanced` draws the type of each by the papers' shares, then
            the next step of that type; rare types come round more often, and a step that comes twice in one batch is
            taken once.
        share: As in SessionPlan.
    """

    def __init__(
        self,
        trunks: Sequence[SessionTokens],
        size: int,
        balance: Balance,
        key: str,
        share: Share = ALL,
    ) -> None:
        self._trunks, self._size, self._share = trunks, size, share
        pairs = [(index, position) for index, trunk in enumerate(trunks) for position in range(len(trunk.replies))]
        self._stream = _epochs(pairs, key) if balance == "uniform" else _balanced(self._by_type(pairs), key)
        self._drawn: list[tuple[int, int]] = []

    def pairs(self, number: int) -> list[tuple[int, int]]:
        """The first `number` steps as (trunk, position among its replies); each `size` of them are a batch."""
        self._drawn += islice(self._stream, max(0, number - len(self._drawn)))
        return self._drawn[:number]

    def batch(self, step: int) -> list[SessionSteps]:
        """The sessions of batch `step` (from 0) with those of their steps that are in it."""
        positions = defaultdict(set)
        for index, position in self.pairs((step + 1) * self._size)[step * self._size :]:
            positions[index].add(position)
        batch = [
            (self._trunks[index], [self._trunks[index].replies[position] for position in sorted(positions[index])])
            for index in sorted(positions)
        ]
        return own_share(batch, self._share)

    def _by_type(self, pairs: Sequence[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
        by_type: dict[str, list[tuple[int, int]]] = {name: [] for name in BALANCED}
        for index, position in pairs:
            by_type[reply_action(self._trunks[index].replies[position].action)["type"]].append((index, position))
        if missing := [name for name, own in by_type.items() if not own]:
            raise BadConfig(
                f"balance = 'balanced', but no training step is a {' or a '.join(missing)}; take balance = 'uniform'."
            )
        return by_type


def _balanced(by_type: dict[str, list[tuple[int, int]]], key: str) -> Iterator[tuple[int, int]]:
    streams = {name: _epochs(pairs, f"{key} {name}") for name, pairs in by_type.items()}
    random = Random(f"{key} types")
    while True:
        (name,) = random.choices(list(BALANCED), list(BALANCED.values()))
        yield next(streams[name])


def _epochs(items: Sequence[T], key: str) -> Iterator[T]:
    for epoch in count():
        yield from _shuffled(items, f"{key} epoch {epoch}")


def _shuffled(items: Sequence[T], key: str) -> list[T]:
    order = list(items)
    Random(key).shuffle(order)
    return order
