"""Tokens and money: what a request can cost at the most before it is sent, and what it did cost.

Money is counted in whole trillionths of the currency, so that sums are exact: a price has up to six decimals, and is
that of a million tokens. How many tokens a server will read in a text is not known beforehand; it cannot be more than
the text has bytes (a token stands for at least one), besides what a chat template puts around each message.
"""

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple, Self

import msgspec

from replay_sessions.errors import BadConfig

__all__ = ["UNITS", "Budget", "Cost", "Prices", "most_tokens"]

UNITS = 10**12  # of money, in one of the currency
_TEMPLATE_TOKENS_A_MESSAGE = 32
_TEMPLATE_TOKENS = 256  # a template's own system message and what it makes of a response format
_LARGEST = 2**62  # what SQLite counts


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

    def holds(self, spent: Cost) -> bool:
        return (self.money is None or spent.money <= self.money) and (
            self.tokens is None or spent.tokens <= self.tokens
        )


def _units(name: str, amount: float, divisor: int, *, up: bool = True) -> int:
    """An amount in units; prices are rounded up and budgets down where they have more decimals than are counted."""
    if not 0 <= amount * UNITS / divisor < _LARGEST:
        raise BadConfig(f"{name} is {amount}; it must be 0 or more, and no fortune")
    units = Decimal(str(amount)) * UNITS / divisor
    return math.ceil(units) if up else math.floor(units)


def most_tokens(request: Mapping[str, Any], max_new_tokens: int) -> tuple[int, int]:
    """The most tokens that a server can read and write for a request."""
    text_bytes = len(msgspec.json.encode(request))
    read = text_bytes + len(request["messages"]) * _TEMPLATE_TOKENS_A_MESSAGE + _TEMPLATE_TOKENS
    return read, max_new_tokens
