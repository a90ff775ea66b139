"""One SQLite file of answers and of their cost: no request is paid for twice, and none is sent without a reservation.

    reserve (the most that a request can cost) ─► send ─► settle (with the answer and its cost, in one transaction)
                                                     └──► settle (no answer: nothing, or all of it where unknown)

A reservation counts as spent until it is settled, so the budget holds for all requests at the same time, of threads and
of other processes with the same file. A request in flight when its process was killed stays counted at its most: the
server may have charged for it. Where only requests in flight leave no room in a budget, a thread waits for these.

Money is counted in whole trillionths of the currency, so that sums are exact: a price has up to six decimals, and is
that of a million tokens. How many tokens a server will read in a text is not known beforehand; it cannot be more than
the text has bytes (a token stands for at least one), besides what a chat template puts around each message.

Answers are JSON text; nothing in the file is run or unpickled (why this is no pickling cache such as diskcache). A kill
loses nothing that was stored; a machine that loses power may lose the last seconds.
"""

import math
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from agents.prompting.answers import Answer, NoAnswer
from replay_sessions.foundation.errors import BadConfig, WriteFailed

UNITS = 10**12  # of money, in one of the currency
_VERSION = 1
_BUSY_S = 60  # how long another process may hold the file
_LARGEST = 2**62  # what SQLite counts
_TEMPLATE_TOKENS_A_MESSAGE = 32
_TEMPLATE_TOKENS = 256  # a template's own system message, and its text for a response format


class Cost(NamedTuple):
    """Money in units, and tokens."""

    money: int
    tokens: int


class Prices(NamedTuple):
    """Of one token, in units of money."""

    input: int
    output: int

    @classmethod
    def of(cls, input_price: float | None, output_price: float | None) -> Self | None:
        """Of a million tokens in the currency; None where neither is given."""
        if input_price is None and output_price is None:
            return None
        if input_price is None or output_price is None:
            raise BadConfig("input_price and output_price belong together: give both, each of a million tokens")
        return cls(_units("input_price", input_price, 10**6), _units("output_price", output_price, 10**6))

    def cost(self, input_tokens: int, output_tokens: int) -> int:
        return input_tokens * self.input + output_tokens * self.output


class Budget(NamedTuple):
    """The most that may be spent; None: no limit."""

    money: int | None = None
    tokens: int | None = None

    @classmethod
    def of(cls, money: float | None, tokens: int | None, *, priced: bool) -> Self:
        if money is not None and not priced:
            raise BadConfig("a budget in money needs prices: give input_price and output_price of a million tokens")
        if tokens is not None and tokens < 0:
            raise BadConfig(f"budget_tokens is {tokens}; it must be 0 or more")
        return cls(None if money is None else _units("budget", money, 1, up=False), tokens)


class Spending(NamedTuple):
    """What was spent through one file so far, over all runs.

    Attributes:
        cost: Requests in flight count at their most.
        tries: How many requests were sent.
        unknown: Of them, how many ended unknown (cut connections, time-outs, kills); counted at their most.
    """

    cost: Cost
    tries: int
    unknown: int


class Account:
    """The answers and the spending in one file; threads may share it.

    Args:
        path: The file; made if need be.
        budget: What all requests through the file may cost together.

    Raises:
        BadConfig: The file cannot be opened, or is something else.
    """

    def __init__(self, path: Path, budget: Budget) -> None:
        self.path = path
        self._limits = [_LARGEST if limit is None else limit for limit in budget]
        self._lock = threading.Condition()  # for the connection, and notified when a request ends
        self._in_flight = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, timeout=_BUSY_S, check_same_thread=False)
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise BadConfig(f"cache '{path}' cannot be used ({error}): choose another file") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def answer(self, key: str) -> Answer | None:
        """The stored answer to a request, if there is one."""
        with self._lock, self._transaction():
            row = self._file.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        return msgspec.json.decode(row[0], type=Answer) if row else None

    def reserve(self, most: Cost) -> None:
        """Reserves the most that a request can cost; waits for requests in flight that may leave room.

        Raises:
            NoAnswer: The budget has no room for it.
        """
        # One statement, so that no other process spends between the check and the sum.
        statement = (
            "UPDATE spending SET money = money + :money, tokens = tokens + :tokens, tries = tries + 1 "
            "WHERE money + :money <= :money_limit AND tokens + :tokens <= :tokens_limit"
        )
        limits = dict(zip(("money_limit", "tokens_limit"), self._limits, strict=True))
        with self._lock:
            while True:
                with self._transaction():
                    if self._file.execute(statement, most._asdict() | limits).rowcount:
                        break
                if self._in_flight == 0:
                    raise self._no_room(most)
                self._lock.wait()
            self._in_flight += 1

    def settle(self, reserved: Cost, cost: Cost | None, *, key: str = "", answer: Answer | None = None) -> None:
        """Books the end of a request in place of what was reserved, and stores its answer, if it has one.

        Args:
            cost: None: it is unknown what the server charged.
        """
        actual = cost or reserved
        with self._lock:
            self._in_flight -= 1
            self._lock.notify_all()  # threads that wait for room, also where this cannot be written
            with self._transaction():
                if answer is not None:
                    text = msgspec.json.encode(answer).decode()
                    self._file.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, text))
                self._file.execute(
                    "UPDATE spending SET money = money + ?, tokens = tokens + ?, known = known + ?",
                    (actual.money - reserved.money, actual.tokens - reserved.tokens, cost is not None),
                )

    def spending(self) -> Spending:
        """What was spent until now."""
        with self._lock, self._transaction():
            money, tokens, tries, settled = self._file.execute("SELECT * FROM spending").fetchone()
            return Spending(Cost(money, tokens), tries, tries - settled - self._in_flight)

    def _prepare(self) -> None:
        (version,) = self._file.execute("PRAGMA user_version").fetchone()
        (tables,) = self._file.execute(
            "SELECT count(*) FROM sqlite_master WHERE tbl_name NOT IN ('answers', 'spending')"
        ).fetchone()
        if tables or version not in (0, _VERSION):
            raise sqlite3.DatabaseError("it holds something else")
        with suppress(sqlite3.OperationalError):  # another process is doing just that, and SQLite does not wait for it
            self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")
        # Of several processes that come at once, each statement finds what another made.
        for statement in (
            "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID",
            "CREATE TABLE IF NOT EXISTS spending (money INTEGER, tokens INTEGER, tries INTEGER, known INTEGER)",
            "INSERT INTO spending SELECT 0, 0, 0, 0 WHERE NOT EXISTS (SELECT * FROM spending)",
            f"PRAGMA user_version = {_VERSION}",
        ):
            with self._file:
                self._file.execute(statement)

    def _no_room(self, most: Cost) -> NoAnswer:
        spent, (money_limit, tokens_limit) = self.spending().cost, self._limits
        if spent.money + most.money > money_limit:
            detail = (
                f"{format_money(spent.money)} of {format_money(money_limit)} is spent, and this may cost "
                f"{format_money(most.money)}"
            )
        else:
            detail = f"{spent.tokens:,} of {tokens_limit:,} tokens are spent, and this may take {most.tokens:,}"
        return NoAnswer("budget used up", f"{detail} (all requests through {self.path.name} count)")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._file:
                yield
        except sqlite3.Error as error:
            raise WriteFailed(f"cache '{self.path}' cannot be read or written ({error})") from error


def _units(name: str, amount: float, divisor: int, *, up: bool = True) -> int:
    """An amount in units; prices are rounded up and budgets down where they have more decimals than are counted."""
    if not 0 <= amount * UNITS / divisor < _LARGEST:
        raise BadConfig(f"{name} is {amount}; it must be 0 or more, and less than {_LARGEST * divisor // UNITS:,}")
    units = Decimal(str(amount)) * UNITS / divisor
    return math.ceil(units) if up else math.floor(units)


def most_tokens(request: Mapping[str, Any], max_new_tokens: int) -> tuple[int, int]:
    """The most tokens that a server can read and write for a request."""
    text_bytes = len(msgspec.json.encode(request))
    read = text_bytes + len(request["messages"]) * _TEMPLATE_TOKENS_A_MESSAGE + _TEMPLATE_TOKENS
    return read, max_new_tokens


def format_money(units: int) -> str:
    """Units of money with two decimals or more.

    >>> format_money(1_500_000_000_000), format_money(1_250_000)
    ('1.50', '0.00000125')
    """
    units_of_currency, fraction = divmod(units, UNITS)
    digits = f"{fraction:012d}".rstrip("0").ljust(2, "0")
    return f"{units_of_currency}.{digits}"
