"""One SQLite file of answers and of what they cost: nothing is asked twice, nothing spent that was not set aside.

    reserve (the most that a request can cost) ─► ask ─► keep (the answer, and what it did cost, in one transaction)
                                                    └──► settle (no answer: nothing, or all of it where that is unknown)

What is reserved counts as spent until it is known better, so the budget holds whatever is asked at the same time, by
threads or by other processes with the same file. A request that was under way when its process was killed stays
counted at its most: the server may have charged for it. Where a budget has no room only because of requests that are
under way, a thread waits for these.

Answers are JSON text; nothing in the file is run or unpickled. A kill loses nothing that was kept; a machine that loses
power may lose the last seconds.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from agents.prompting.failures import NoAnswer
from agents.prompting.prices import UNITS, Budget, Cost
from replay_sessions.errors import BadConfig, WriteFailed

__all__ = ["Account", "Answer", "Spending"]

_VERSION = 1
_BUSY_S = 60  # how long another process may hold the file


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model answered.

    Attributes:
        text: Its reply.
        ended: Why it stopped, in the API's words: stop, length, content_filter, …
        refused: Whether the server marked the text as a refusal.
        input_tokens: How many it read; None where the server did not say.
        output_tokens: How many it wrote.
    """

    text: str
    ended: str
    refused: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None


class Spending(NamedTuple):
    """What was spent through one file so far, over all runs.

    Attributes:
        cost: What is still open counts at its most.
        tries: How many requests were sent.
        unknown: Of them, how many never got a known end (cut connections, time-outs, kills); counted at their most.
    """

    cost: Cost
    tries: int
    unknown: int


class Account:
    """The answers and the spending that one file keeps; threads may share it.

    Args:
        path: The file; made if need be.
        budget: What all that was ever asked through it may cost together.

    Raises:
        BadConfig: The file cannot be opened, or is something else.
    """

    def __init__(self, path: Path, budget: Budget) -> None:
        self.path = path
        self._budget = budget
        self._lock = threading.Condition()  # for the connection, and told when a request ends
        self._under_way = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            self._prepare()
        except (OSError, sqlite3.Error, WriteFailed) as error:
            raise BadConfig(f"cache '{path}' cannot be used ({error}): choose another file") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def answer(self, key: str) -> Answer | None:
        """The kept answer to a request, if there is one."""
        with self._lock, self._told():
            row = self._file.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        return msgspec.json.decode(row[0], type=Answer) if row else None

    def reserve(self, most: Cost) -> None:
        """Sets aside the most that a request can cost; waits for others that may leave room.

        Raises:
            NoAnswer: The budget has no room for it.
        """
        with self._lock:
            while not self._spend(most):
                if self._under_way == 0:
                    raise self._no_room(most)
                self._lock.wait()
            self._under_way += 1

    def keep(self, key: str, answer: Answer, reserved: Cost, cost: Cost) -> None:
        """Keeps an answer and books what it cost in place of what was reserved."""
        text = msgspec.json.encode(answer).decode()
        with self._ended(), self._transaction():
            self._file.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, text))
            self._book(reserved, cost, known=1)

    def settle(self, reserved: Cost, cost: Cost | None) -> None:
        """Books the end of a request without an answer; None: it is not known what the server charged."""
        with self._ended(), self._transaction():
            self._book(reserved, reserved if cost is None else cost, known=int(cost is not None))

    def spending(self) -> Spending:
        """What was spent until now."""
        with self._lock, self._told():
            money, tokens, tries, known = self._file.execute("SELECT * FROM spending").fetchone()
            return Spending(Cost(money, tokens), tries, tries - known - self._under_way)

    def _prepare(self) -> None:
        with self._transaction():  # of several processes that come at once, one makes the tables
            (version,) = self._file.execute("PRAGMA user_version").fetchone()
            (tables,) = self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if version != _VERSION and (version or tables):
                raise sqlite3.DatabaseError("it holds something else")
            if not tables:
                self._file.execute("CREATE TABLE answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID")
                self._file.execute(
                    "CREATE TABLE spending (money INTEGER, tokens INTEGER, tries INTEGER, known INTEGER)"
                )
                self._file.execute("INSERT INTO spending VALUES (0, 0, 0, 0)")
                self._file.execute(f"PRAGMA user_version = {_VERSION}")
        with suppress(sqlite3.OperationalError):  # another process is doing just that, and SQLite does not wait for it
            self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")

    def _spend(self, most: Cost) -> bool:
        """Books a try at its most, if the budget has room for it."""
        with self._transaction():
            money, tokens = self._file.execute("SELECT money, tokens FROM spending").fetchone()
            if not self._budget.holds(Cost(money + most.money, tokens + most.tokens)):
                return False
            self._file.execute("UPDATE spending SET money = money + ?, tokens = tokens + ?, tries = tries + 1", most)
            return True

    def _book(self, reserved: Cost, cost: Cost, *, known: int) -> None:
        self._file.execute(
            "UPDATE spending SET money = money + ?, tokens = tokens + ?, known = known + ?",
            (cost.money - reserved.money, cost.tokens - reserved.tokens, known),
        )

    def _no_room(self, most: Cost) -> NoAnswer:
        money, tokens = self._file.execute("SELECT money, tokens FROM spending").fetchone()
        if not Budget(money=self._budget.money).holds(Cost(money + most.money, 0)):
            limit = in_money(self._budget.money or 0)
            told = f"{in_money(money)} of {limit} is spent, and this may cost {in_money(most.money)}"
        else:
            told = f"{tokens:,} of {self._budget.tokens:,} tokens are spent, and this may take {most.tokens:,}"
        return NoAnswer("budget used up", f"{told} (all that was asked through {self.path.name} counts)")

    @contextmanager
    def _ended(self) -> Iterator[None]:
        """A request ends: whoever waits for room is told, also where this cannot be written down."""
        with self._lock:
            self._under_way -= 1
            self._lock.notify_all()
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._told():
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._file.execute("COMMIT")
            except BaseException:
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
                raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise WriteFailed(f"cache '{self.path}' cannot be read or written ({error})") from error


def in_money(units: int) -> str:
    """Units of money as people write it.

    >>> in_money(1_500_000_000_000), in_money(1_250_000)
    ('1.50', '0.00000125')
    """
    whole, rest = divmod(units, UNITS)
    digits = f"{rest:012d}".rstrip("0").ljust(2, "0")
    return f"{whole}.{digits}"
