"""Selects the sessions or single steps of each batch, from seed and step only, so that runs resume with the same ones.

SFT takes whole sessions (Shop-R1, section 4.1). GRPO takes either whole sessions, so that all their steps share one
pass over the pages, or a number of ⟨context, next action⟩ pairs as the papers do. Pairs are drawn one by one, uniformly
or balanced over action types.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, cycle, islice
from random import Random
from typing import Literal, TypeVar

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import reply_action
from train.tokens import ReplySpan, SessionTokens

Balance = Literal["uniform", "balanced"]
# Shop-R1, section 4.1: click and type_and_submit each occur about 10% more frequently than terminate.
BALANCED = {"click": 1.1, "type_and_submit": 1.1, "terminate": 1.0}

T = TypeVar("T")
Share = tuple[int, int]  # a process's rank, and the number of processes that share each batch
ALL = (0, 1)
SessionSteps = tuple[SessionTokens, list[ReplySpan]]  # steps of one session, in their order


def split_batches(
    items: Iterable[T], cost: Callable[[Sequence[T], T], Sequence[int]], *limits: int
) -> Iterator[list[T]]:
    """Splits items, in their order, into batches of at least one item, the costs of which stay within the limits.

    Args:
        items: The items.
        cost: Takes the batch so far and an item; returns the costs that the item adds, one number for each limit.
        limits: The largest sum of each cost in a batch.

    >>> list(split_batches([3, 4, 9, 1], lambda batch, item: (1, item), 2, 8))
    [[3, 4], [9], [1]]
    """
    batch: list[T] = []
    totals: Sequence[int] = [0] * len(limits)
    for item in items:
        sums = [total + added for total, added in zip(totals, cost(batch, item), strict=True)]
        if batch and any(total > limit for total, limit in zip(sums, limits, strict=True)):
            yield batch
            batch = []
            sums = [*cost(batch, item)]
        batch.append(item)
        totals = sums
    if batch:
        yield batch


def deal(costs: Sequence[int], number: int, processes: int) -> list[int]:
    """Deals items to processes by their costs, and returns the indices of one process's items in ascending order.

    Each item goes to the process with the least cost so far, the largest items first (LPT, Graham 1969). So the process
    with the highest cost, for which the others wait, has little more than the mean.

    Args:
        costs: The cost of each item.
        number: The rank of the process.
        processes: The number of processes.
    """
    loads, indices = [0] * processes, []
    for index in sorted(range(len(costs)), key=costs.__getitem__, reverse=True):
        least = loads.index(min(loads))
        loads[least] += costs[index]
        if least == number:
            indices.append(index)
    return sorted(indices)


def own_share(batch: Sequence[SessionSteps], share: Share) -> list[SessionSteps]:
    """Returns one process's sessions of a batch, in their order, dealt by their numbers of tokens."""
    return [batch[index] for index in deal([replies[-1].end for _, replies in batch], *share)]


class SessionPlan:
    """A plan of batches of whole sessions; the order of an epoch depends on `key` and the epoch only.

    A batch has at most `size` sessions with all their trunks, and at most `max_tokens` tokens, but at least one
    session. A session counts with the tokens of its longest trunk, so that contexts that give each step its own trunk
    do not make smaller batches. Batches do not cross epochs.

    Args:
        trunks: The trunks of all sessions.
        size: The largest number of sessions of a batch.
        max_tokens: The largest number of tokens of a batch.
        key: The seed of the shuffles.
        share: This process's rank, and the number of processes that each batch is dealt to by tokens.
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

    def batches_per_epoch(self, share: float = 1.0) -> int:
        """Returns the number of batches of the first epoch; if tokens limit batches, others may have more or fewer.

        Args:
            share: The fraction of all sessions that the plan holds; they stand for the others too.
        """
        return len(self._plan_epoch(0, round(len(self._sessions) / share)))

    def batch(self, step: int, first_replies: int | None = None) -> list[SessionSteps]:
        """Returns this process's trunks of batch `step`, each with its steps.

        Args:
            step: Counted from 0.
            first_replies: The number of first steps that are taken from each session. If None, all.
        """
        while len(self._batches) <= step:
            self._batches += self._plan_epoch(next(self._epochs))
        sessions = (self._sessions[index] for index in self._batches[step])
        return own_share([steps for session in sessions for steps in _first_steps(session, first_replies)], self._share)

    def _plan_epoch(self, epoch: int, sessions: int | None = None) -> list[list[int]]:
        """Returns the batches of an epoch; of one with more `sessions` than the plan has, its own come repeatedly."""
        order = _shuffled(range(len(self._sessions)), f"{self._key} epoch {epoch}")
        order = list(islice(cycle(order), sessions if sessions is not None else len(order)))
        lengths = [max(len(trunk.tokens) for trunk in session) for session in self._sessions]
        batches = split_batches(order, lambda _, index: (1, lengths[index]), self._size, self._max_tokens)
        return list(batches) or [[]]


def _first_steps(session: Sequence[SessionTokens], number: int | None) -> list[SessionSteps]:
    """Returns the trunks of a session with the first `number` of its steps, without trunks that have none of these."""
    first = sorted(reply.step_index for trunk in session for reply in trunk.replies)[:number]
    steps = [(trunk, [reply for reply in trunk.replies if reply.step_index in first]) for trunk in session]
    return [(trunk, replies) for trunk, replies in steps if replies]


class StepPlan:
    """A plan of batches of `size` single steps; those of one trunk stay together.

    Args:
        trunks: The trunks, with the steps that may be drawn as their replies.
        size: The number of steps of a batch.
        balance: `uniform` takes every step once in each epoch. `balanced` first draws an action type by the papers'
            shares, then takes the next step of that type. Steps of rare types are repeated more often; a step that is
            drawn twice for one batch is taken once.
        key: The seed of the draws.
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
        """Returns the first `number` drawn steps as (trunk, position among its replies); `size` of them are a batch."""
        self._drawn += islice(self._stream, max(0, number - len(self._drawn)))
        return self._drawn[:number]

    def batch(self, step: int) -> list[SessionSteps]:
        """Returns this process's trunks of batch `step` (from 0), each with its steps that are in the batch."""
        positions = defaultdict(set)
        for index, position in self.pairs((step + 1) * self._size)[step * self._size :]:
            positions[index].add(position)
        batch = [
            (self._trunks[index], [self._trunks[index].replies[position] for position in sorted(positions[index])])
            for index in sorted(positions)
        ]
        return own_share(batch, self._share)

    def _by_type(self, pairs: Sequence[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
        by_type: defaultdict[str, list[tuple[int, int]]] = defaultdict(list, {name: [] for name in BALANCED})
        for index, position in pairs:
            by_type[reply_action(self._trunks[index].replies[position].action)["type"]].append((index, position))
        if others := by_type.keys() - BALANCED.keys():
            raise BadConfig(f"balance = 'balanced' has no share for {min(others)}; take balance = 'uniform'.")
        if missing := [name for name, pairs_of_type in by_type.items() if not pairs_of_type]:
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
