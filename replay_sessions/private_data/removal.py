"""Texts, addresses and simplified pages with `[kind]` in the place of what is private in them.

Which values on a page are the shop's own may be known only later, from the pages of others. So a page can be marked
first: each value stands in it between signs that no text holds, behind its kind, until `settle` removes it or not.
"""

import html
import re
from collections.abc import Container

from replay_sessions.private_data.fields import kind_of_field
from replay_sessions.private_data.patterns import find_private_data
from replay_sessions.private_data.urls import without_private_parts

PUT_IN = re.compile(r"\[(name|email|phone|card|order|address|birth_date|id_number|secret|customer)\]")
MARKED = re.compile("\ufdd0(\\w*)\ufdd1([^\ufdd0\ufdd2]*)\ufdd2")  # Unicode keeps these for use within programs
_FIELD = re.compile(r"<(?:input|textarea)\b[^<>]*>")
_ATTRIBUTE = re.compile(r' ([\w-]+)="([^"]*)"')
_VALUE = re.compile(r'(?<= value=")[^"]+')


def remove_from_text(text: str) -> str:
    """Returns a text without what is private in it by its form.

    >>> remove_from_text("Write to anna@example.org")
    'Write to [email]'
    """
    return settle(mark_text(text))


def mark_text(text: str, kept: Container[str] = ()) -> str:
    """Returns a text in which what is private by its form is marked.

    Args:
        kept: Values that stay; they are marked without a kind.
    """
    parts: list[str] = []
    done = 0
    for span in find_private_data(text):
        kind = "" if span.text in kept else span.kind
        parts += (text[done : span.start], f"\ufdd0{kind}\ufdd1{span.text}\ufdd2")
        done = span.end
    return "".join((*parts, text[done:])) if parts else text


def settle(marked: str, kept: Container[str] = ()) -> str:
    """Returns a marked text without its marks, and without the values that do not stay.

    Args:
        kept: Further values that stay.
    """
    return MARKED.sub(lambda mark: mark[2] if not mark[1] or mark[2] in kept else f"[{mark[1]}]", marked)


def remove_from_url(url: str) -> str:
    """Returns an address of a page without credentials and what is private in its parameters and folders.

    >>> remove_from_url("https://shop.example/login?email=anna%40example.org&next=/cart")
    'https://shop.example/login?email=[email]&next=/cart'
    """
    return without_private_parts(url, remove_from_text)


def remove_from_page(page: str) -> str:
    """Returns a simplified page without what is private in its texts and attributes and typed into its fields."""
    return settle(mark_page(page))


def mark_page(page: str) -> str:
    """Returns a simplified page without what is typed into its fields, in which all else that is private is marked."""
    return mark_text(_FIELD.sub(_without_value, page))


def _without_value(field: re.Match[str]) -> str:
    attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(field[0])}
    name = attributes.get("name", "").rpartition(".")[2]
    kind = kind_of_field({**attributes, "name": name})
    return _VALUE.sub(f"[{kind}]", field[0]) if kind else field[0]


def kinds_in_text(text: str) -> list[str]:
    """Returns the kind of everything that is private in a text by its form."""
    return [span.kind for span in find_private_data(text)]


def kinds_in_url(url: str) -> list[str]:
    """Returns the kind of everything that is private in an address of a page."""
    return PUT_IN.findall(remove_from_url(PUT_IN.sub("", url)))


def kinds_in_page(page: str) -> list[str]:
    """Returns the kind of everything that is private in a simplified page."""
    return PUT_IN.findall(remove_from_page(PUT_IN.sub("", page)))
