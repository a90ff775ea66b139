"""Private data out of a page: names, e-mail addresses, phone, card and order numbers, postal addresses.

By place (a recipe's `private`), by what a page itself says of a text ("Deliver to …", "Hello, Anna", "Order #…"), and by
pattern (a street and its number, a card number with its check digit; phone numbers are judged by Google's
libphonenumber). What was found once is taken out wherever the page repeats it, also from the words that names are made
from, so nothing private gets into the name of an element.

Patterns miss some and take some that they should not; `tests/replay_sessions/simplify/private_cases.py` holds the cases
that say how many. A shop's free-phone lines stay: they are nobody's.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from replay_sessions.simplify.private_data.addresses import find_addresses
from replay_sessions.simplify.private_data.announced import find_announced
from replay_sessions.simplify.private_data.numbers import find_numbers
from replay_sessions.simplify.private_data.spans import SEPARATOR, PageText, Span

__all__ = ["Removal", "find_private_data", "remove_private_data", "remove_repeated"]

_MIN_REPEATED = 3  # shorter ones are taken out only where they were found
_TAGS = re.compile(r"(?:\s*<[^>]*>\s*)+")


class Removal(msgspec.Struct, frozen=True):
    """Something private that was taken out.

    Attributes:
        kind: "name", "email", "phone", "card", "order" or "address"; `[kind]` stands in its place.
        text: What it was. Keep it out of logs.
    """

    kind: str
    text: str


def find_private_data(text: str) -> list[Removal]:
    """What looks private in the visible text of a page, given as HTML or as plain text.

    >>> [removal.kind for removal in find_private_data("<b>Hello, Anna</b> <td>Order</td> <td>48-12345-99</td>")]
    ['name', 'order']
    """
    page = PageText(_TAGS.split(text))
    return [Removal(span.kind, page.joined[span.start : span.end]) for span in _spans(page)]


def remove_private_data(
    texts: Sequence[str], concealed: Iterable[tuple[str, str]] = ()
) -> tuple[list[str], tuple[Removal, ...]]:
    """Takes private data out of the texts of a page, given in its order.

    Args:
        concealed: What was taken out of the page already, because of its place: (kind, text).

    Returns:
        The texts, and what was taken out, each once.
    """
    page = PageText(texts)
    spans = _spans(page)
    found = [Removal(kind, given) for kind, given in concealed]
    found += [Removal(span.kind, page.joined[span.start : span.end]) for span in spans]
    removed = tuple(dict.fromkeys(found))
    if not removed:
        return list(texts), ()
    joined = remove_repeated([_replace(page.joined, spans)], removed)[0]
    return joined.split(SEPARATOR), removed


def remove_repeated(texts: Sequence[str], removed: Sequence[Removal]) -> list[str]:
    """Takes out of texts what was found private elsewhere. Addresses only if a number is in them: countries stay."""
    kinds = {
        removal.text: removal.kind
        for removal in removed
        if len(removal.text) >= _MIN_REPEATED and (removal.kind != "address" or any(map(str.isdigit, removal.text)))
    }
    if not kinds:
        return list(texts)
    longest_first = "|".join(re.escape(given) for given in sorted(kinds, key=len, reverse=True))
    pattern = re.compile(rf"(?<!\w)(?:{longest_first})(?!\w)")
    return [pattern.sub(lambda match: f"[{kinds[match[0]]}]", text) for text in texts]


def _spans(page: PageText) -> list[Span]:
    """What looks private, in order and without overlaps: of two that overlap the one that begins first, or is longer."""
    found = [*find_announced(page), *find_numbers(page), *find_addresses(page)]
    kept: list[Span] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def _replace(text: str, spans: list[Span]) -> str:
    pieces: list[str] = []
    end = 0
    for span in spans:
        pieces += (text[end : span.start], f"[{span.kind}]")
        end = span.end
    return "".join((*pieces, text[end:]))
