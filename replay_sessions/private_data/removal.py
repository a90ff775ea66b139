"""Replaces private values in texts, URLs and simplified pages by `[kind]`.

Only the pages of other users show which values on a page are the shop's own, and only their addresses show its domain.
So a page can be marked first: each value stands behind its kind, between characters that no text holds, until `settle`
removes or keeps it.
"""

import html
import re
from collections.abc import Collection, Container

from replay_sessions.private_data.fields import kind_of_field
from replay_sessions.private_data.patterns import find_private_data
from replay_sessions.private_data.urls import without_private_parts

PUT_IN = re.compile(r"\[(name|email|phone|card|order|address|birth_date|id_number|secret|customer)\]")
MARKED = re.compile("\ufdd0(\\w*)\ufdd1([^\ufdd0\ufdd2]*)\ufdd2")  # Unicode's noncharacters, for internal use
_FIELD = re.compile(r"<(?:input|textarea)\b[^<>]*>")
_ATTRIBUTE = re.compile(r' ([\w-]+)="([^"]*)"')
_VALUE = re.compile(r'(?<= value=")[^"]+')


def remove_from_text(text: str, hosts: Collection[str] = ()) -> str:
    """Returns a text with private values replaced by their kinds.

    Args:
        hosts: The hosts of the shop, see `judge_mailboxes`.

    >>> remove_from_text("Write to anna@example.org")
    'Write to [email]'
    """
    return settle(judge_mailboxes(mark_text(text), hosts))


def mark_text(text: str, kept: Container[str] = ()) -> str:
    """Returns a text with private values marked.

    Args:
        kept: Values that stay; they are marked without a kind.
    """
    parts: list[str] = []
    done = 0
    for span in find_private_data(text, mailboxes=True):
        kind = "" if span.text in kept else span.kind
        parts += (text[done : span.start], f"\ufdd0{kind}\ufdd1{span.text}\ufdd2")
        done = span.end
    return "".join((*parts, text[done:])) if parts else text


def judge_mailboxes(marked: str, hosts: Collection[str]) -> str:
    """Returns a marked text in which mailboxes such as `info@` of other domains than the shop's are private.

    Args:
        hosts: The hosts of the shop. If empty, its domain is unknown, and all such mailboxes stay.
    """

    def judged(mark: re.Match[str]) -> str:
        domain = f".{mark[2].rpartition('@')[2].lower()}"
        is_shops = not hosts or any(f".{host}".endswith(domain) or domain.endswith(f".{host}") for host in hosts)
        return f"\ufdd0{'' if is_shops else 'email'}\ufdd1{mark[2]}\ufdd2" if mark[1] == "mailbox" else mark[0]

    return MARKED.sub(judged, marked) if "\ufdd0mailbox" in marked else marked


def settle(marked: str, kept: Container[str] = ()) -> str:
    """Returns a marked text without its marks, and with the values that do not stay replaced by their kinds.

    Args:
        kept: Values that stay, besides mailboxes and those that are marked without a kind.
    """
    return MARKED.sub(lambda mark: mark[2] if mark[1] in ("", "mailbox") or mark[2] in kept else f"[{mark[1]}]", marked)


def remove_from_url(url: str, hosts: Collection[str] = ()) -> str:
    """Returns a URL with credentials and private values in its path and parameters replaced by their kinds.

    Args:
        hosts: The hosts of the shop, see `judge_mailboxes`.

    >>> remove_from_url("https://shop.example/login?email=anna%40example.org&next=/cart")
    'https://shop.example/login?email=[email]&next=/cart'
    """
    return without_private_parts(url, lambda part: remove_from_text(part, hosts))


def remove_from_page(page: str) -> str:
    """Returns a simplified page with private values in texts, attributes and form fields replaced by their kinds."""
    return settle(mark_page(page))


def mark_page(page: str) -> str:
    """Returns a simplified page with private values of form fields replaced and all others marked."""
    return mark_text(_FIELD.sub(_without_value, page))


def _without_value(field: re.Match[str]) -> str:
    attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(field[0])}
    name = attributes.get("name", "").rpartition(".")[2]
    kind = kind_of_field({**attributes, "name": name})
    return _VALUE.sub(f"[{kind}]", field[0]) if kind else field[0]


def kinds_in_text(text: str) -> list[str]:
    """Returns the kind of each private value in a text."""
    return [span.kind for span in find_private_data(text)]


def kinds_in_url(url: str) -> list[str]:
    """Returns the kind of each private value in a URL."""
    return PUT_IN.findall(remove_from_url(PUT_IN.sub("", url)))


def kinds_in_page(page: str) -> list[str]:
    """Returns the kind of each private value in a simplified page."""
    return PUT_IN.findall(remove_from_page(PUT_IN.sub("", page)))
