"""Private data out of pages and sessions: names, e-mail addresses, phone, card and order numbers, postal addresses.

By place (a recipe's `private`), by what a page itself says of a text ("Deliver to …", "Hello, Anna", "Order #…"), and
by pattern (a street and its number, a card number with its check digit; phone numbers are judged by Google's
libphonenumber). What was found once is taken out wherever the page repeats it, also from the words that names are made
from, so nothing private gets into the name of an element.

    announced.py   what labels, greetings and sentences announce, and names where an account is shown
    people.py      what is a person's name, and what a brand's or a book's
    numbers.py     e-mail addresses, and phone, card and order numbers
    addresses.py   streets and towns
    urls.py        addresses of pages
    sessions.py    a whole session

Patterns miss some and take some wrongly. A shop's
free-phone lines stay: they are nobody's.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from replay_sessions.private_data.addresses import find_addresses
from replay_sessions.private_data.announced import find_announced, find_spoken
from replay_sessions.private_data.around import find_companions, find_shopper
from replay_sessions.private_data.fields import find_fields
from replay_sessions.private_data.labelled import is_heading, is_number_heading
from replay_sessions.private_data.numbers import find_numbers
from replay_sessions.private_data.people import is_brand, name_parts
from replay_sessions.private_data.shops import is_shops
from replay_sessions.private_data.spans import SURE, PageText, Span
from replay_sessions.private_data.urls import find_credentials, without_credentials, without_private_parts

__all__ = [
    "Removal",
    "find_in_text",
    "find_in_url",
    "find_private_data",
    "html_pieces",
    "remove_from_text",
    "remove_from_url",
    "remove_private_data",
    "remove_repeated",
    "repeated_texts",
    "without_credentials",
]

_MIN_REPEATED = 3  # shorter ones are taken out only where they were found
_TAG = re.compile("(<[^<>]*>)")
_PUT_IN = re.compile(
    r"\[(name|email|phone|card|order|address|birth_date|id_number|secret)\]"
)  # what stands in the place of what was taken out


class Removal(msgspec.Struct, frozen=True):
    """Something private that was taken out.

    Attributes:
        kind: "name", "email", "phone", "card" (and bank accounts), "order", "address", "birth_date", "id_number" or
            "secret"; `[kind]` stands in its place.
        text: What it was. Keep it out of logs.
        found_by: What said so: the recipe's word for its place, a label on the page, its pattern, or a form's field.
        signs: Of a name, how much says that it is a person's.
    """

    kind: str
    text: str
    found_by: Literal["place", "label", "pattern", "field"]
    signs: int = SURE

    @property
    def repeated(self) -> tuple[str, ...]:
        """What is taken out wherever it stands: of a name its parts too. Nothing of countries, which pages are full of,
        of the names of reviewers, who may call themselves anything, and of what may be no person's name."""
        if self.kind == "name":
            if self.found_by == "place" or self.signs < SURE or is_brand(self.text):
                return ()
            names = [self.text, *name_parts(self.text)]
            is_one_case = self.text.islower() or self.text.isupper()
            loud = [name.upper() for name in names if len(name) > _MIN_REPEATED]
            return tuple(dict.fromkeys([*names, *loud, *(map(str.title, names) if is_one_case else ())]))
        is_long = len(self.text) >= _MIN_REPEATED and (self.kind != "address" or any(map(str.isdigit, self.text)))
        return (self.text,) if is_long else ()


def repeated_texts(removed: Iterable[Removal], *, in_names: bool = False) -> dict[str, str]:
    """What is taken out wherever a session repeats it, and its kind.

    Args:
        in_names: Out of the names of elements, which are made of the texts that it was found in: all of it.
    """
    texts = {text: removal.kind for removal in removed for text in removal.repeated}
    weak = (
        removal
        for removal in removed
        if in_names and removal.kind in ("name", "address") and removal.found_by == "label"
    )
    return texts | {removal.text: removal.kind for removal in weak}


def find_private_data(text: str) -> list[Removal]:
    """What looks private on a page, attributes included, given as HTML or as plain text.

    >>> tuple(removal.kind for removal in find_private_data('<b title="Hello, Bo">Hello, Anna</b>'))
    ('name', 'name')
    """
    pieces, order = html_pieces(text)
    page = PageText([" ".join(pieces[position].split()) for position in order])
    return [_removal(page, span) for span in _without_overlaps(_find_labelled(page))]


def html_pieces(page: str) -> tuple[list[str], list[int]]:
    """A page as its tags and the texts between them, and in what order to search them: texts first, so that labels and
    what they label stand side by side; then the tags, for what their attributes hold."""
    pieces = [piece for piece in _TAG.split(page) if piece]
    return pieces, sorted(range(len(pieces)), key=lambda position: pieces[position][:1] == "<")


def find_in_text(text: str) -> list[str]:
    """The kinds of what looks private in what a shopper said or typed."""
    return [span.kind for span in _find_in_speech(PageText([text], is_speech=True))]


def find_in_url(url: str) -> list[str]:
    """The kinds of what looks private in an address of a page."""
    return _PUT_IN.findall(remove_from_url(_PUT_IN.sub("", url)))


def remove_private_data(
    texts: Sequence[str],
    concealed: Iterable[tuple[str, str]] = (),
    continued: Iterable[int] = (),
    in_account: Iterable[int] = (),
    headings: Mapping[int, int] | None = None,
) -> tuple[dict[int, str], tuple[Removal, ...]]:
    """Takes private data out of the texts of a page, given in its order.

    Args:
        concealed: What was taken out of the page already, because of its place: (kind, text).
        continued: The positions of texts that go on in the line of the one before.
        in_account: The positions of those that stand where a shop shows whose account it is.
        headings: The positions of those in a table, and of what is said above their columns.

    Returns:
        The texts that change, by their position, and what was taken out, each once.
    """
    page = PageText(texts, continued)
    spans = [*find_shopper(page, in_account), *_find_labelled(page), *_find_below(page, headings or {})]
    spans = _without_overlaps(spans)
    removals = [Removal(kind, text, "place") for kind, text in concealed] + [_removal(page, span) for span in spans]
    removed = tuple(dict.fromkeys(removals))
    spans += _find_repeated(page, removed)
    companions = list(find_companions(page, spans))
    removed += tuple(_removal(page, span) for span in companions)
    return page.without(_without_overlaps([*spans, *companions])), removed


def remove_repeated(texts: Sequence[str], removed: Sequence[Removal], *, in_names: bool = False) -> dict[int, str]:
    """Takes out of texts what was found private elsewhere: the texts that change, by their position."""
    page = PageText(texts)
    return page.without(_without_overlaps(_find_repeated(page, removed, in_names=in_names)))


def remove_from_text(text: str, removed: Sequence[Removal] = ()) -> str:
    """What a shopper said or typed without what looks private, and without what was found private elsewhere."""
    page = PageText([text], is_speech=True)
    return page.without(_find_in_speech(page, removed)).get(0, text)


def remove_from_url(url: str, removed: Sequence[Removal] = ()) -> str:
    """An address of a page without what is private in its parameters and folders.

    >>> remove_from_url("https://shop.example/login?email=anna%40example.org&next=/cart")
    'https://shop.example/login?email=[email]&next=/cart'
    """
    return without_private_parts(url, lambda value: remove_from_text(value, removed))


def _find_in_speech(page: PageText, removed: Sequence[Removal] = ()) -> list[Span]:
    return _without_overlaps(
        [*find_spoken(page), *_find_labelled(page, is_speech=True), *_find_repeated(page, removed)]
    )


def _find_repeated(page: PageText, removed: Sequence[Removal], *, in_names: bool = False) -> list[Span]:
    """Wherever on a page something stands that was found private."""
    kinds = repeated_texts(removed, in_names=in_names)
    return [Span(start, start + len(text), kinds[text]) for start, text in page.offsets_of(kinds)]


def _find_below(page: PageText, headings: Mapping[int, int]) -> Iterator[Span]:
    """What the headings of tables announce in the cells below them, as if they stood right before each."""
    said: dict[int, str] = {}
    for above in dict.fromkeys(headings.values()):
        words = page.texts[above]
        if is_number_heading(words):  # of what is said before the table: "Your orders", "No."
            first = next(position for position in range(above, -1, -1) if position - 1 not in said)
            words = f"{page.texts[first - 1]} {words}" if first else words
        said[above] = words if is_heading(words) else ""
    told = [(above, below) for below, above in headings.items() if said[above]]
    pairs = PageText([f"{said[above]}: {page.texts[below]}" for above, below in told])
    for span in _find_labelled(pairs) if told else ():
        above, below = told[pair := pairs.text_at(span.start)]
        start = pairs.starts[pair] + len(said[above]) + 2
        if start <= span.start and span.end <= start + len(page.texts[below]):
            moved = page.starts[below] - start
            yield span._replace(start=span.start + moved, end=span.end + moved)


def _removal(page: PageText, span: Span) -> Removal:
    return Removal(span.kind, page.joined[span.start : span.end], span.found_by, span.signs)


def _find_labelled(page: PageText, *, is_speech: bool = False) -> list[Span]:
    addresses = list(find_addresses(page))
    others = [*find_credentials(page.joined), *find_numbers(page, addresses, is_speech=is_speech), *addresses]
    others = others if is_speech else [span for span in others if not is_shops(page, span)]
    announced = (span for span in find_announced(page, others) if not is_shops(page, span))
    return [*find_fields(page), *announced, *others]


def _without_overlaps(spans: list[Span]) -> list[Span]:
    """Spans in order and without overlaps: of two that overlap the one that begins first, or is longer."""
    separate: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not separate or span.start >= separate[-1].end:
            separate.append(span)
    return separate
