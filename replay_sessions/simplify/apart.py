"""Distinguishes elements of the same name: by the rest of a long label, the words of a URL, or the end of its id.

A number in a name depends on the elements before it, so it changes with the page. Elements that would have the same
name in the same scope therefore get distinguishing words; only names that are still equal are numbered. `last_parts`
returns the last parts of all names of a page.
"""

import functools
import re
import unicodedata
from collections.abc import Callable, Hashable, Sequence
from urllib.parse import unquote

from replay_sessions.simplify.names import leaf, rest
from replay_sessions.simplify.targets import Target

Key = Callable[[int], str]

_LONGEST = 24
_TAIL = 4  # characters of an article's number: enough to distinguish it, too few to identify a person
_HOST = re.compile(r"^\s*(?:\w+:)?//[^/]*")
_GAPS = re.compile(r"[-_.,+ ]+")
_WORD = re.compile(r"[^\W\d_][a-z]+|[A-Z]{2,}|(?:(?![A-Za-z])[^\W\d_]){2,}")  # of one case: no part of a random key
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_IDENTIFIER = re.compile(r"(?<![A-Za-z])[A-Za-z]*+\d[\dA-Za-z]{2,}")  # tried once per word, not at each letter
_IDENTIFIED = re.compile(
    r"(?:^|&)(?:(?:products?|items?|art(?:icle|ikel)?|p|variant|category|cat)?_?(?:id|no|nr)|sku|item|product|p)=([^&]*)",
    re.IGNORECASE,
)
_REDIRECT = re.compile(r"[?&](?:ad|dest|target)?_?url=((?:https?(?::|%3A))?(?:/|%2F)[^&#]*)", re.IGNORECASE)
_ADDRESSES_KEPT = 10_000
_LONGEST_REMARK = 40
_MOSTLY = 0.5
_PAGES = frozenset({"asp", "aspx", "htm", "html", "jsp", "php"})


def tell_apart(
    names: Sequence[Hashable], labels: Sequence[str], lasts: Sequence[str], address: Callable[[int], str | None]
) -> dict[int, str]:
    """Returns words to add to equal names, taken from their labels or URLs.

    Args:
        names: Names that should differ.
        labels: The texts from which the names are derived.
        lasts: The last parts of the names.
        address: Returns the URL of a name's element by its index; called only for equal names.

    Returns:
        The words to add, by the index of the name.
    """
    address = functools.cache(address)
    keys: tuple[Key, ...] = (
        lambda index: rest(labels[index]),
        lambda index: words_key(address(index), lasts[index]),
        lambda index: address_key(address(index)),
    )
    first: dict[Hashable, int] = {}
    groups: dict[Hashable, list[int]] = {}
    for index, name in enumerate(names):
        if (other := first.setdefault(name, index)) != index:
            groups.setdefault(name, [other]).append(index)
    added: dict[int, str] = {}
    for group in groups.values():
        _split(group, keys, added)
    return added


def _split(group: list[int], keys: Sequence[Key], added: dict[int, str]) -> None:
    for position, key in enumerate(keys):
        groups: dict[str, list[int]] = {}
        for index in group:
            groups.setdefault(key(index), []).append(index)
        if len(groups) == 1:
            continue
        unchanged = "" if "" in groups else min(groups)  # no words for this group: then its name may be unique
        for words, members in groups.items():
            if words != unchanged:
                for index in members:
                    added[index] = f"{added[index]}_{words}" if index in added else words
            if len(members) > 1:
                _split(members, keys[position + 1 :], added)
        return


def words_key(address: str | None, words_in_name: str) -> str:
    """Returns the words at the end of a URL that a name does not contain yet.

    >>> words_key("https://shop.example/p/kettle-with-filter-00402813/?ref=7", "kettle")
    'with_filter'
    """
    segments = _segments(address)
    words = [word.lower() for word in _GAPS.split(segments[-1]) if _WORD.fullmatch(word)] if segments else []
    name_words = frozenset(words_in_name.split("_")) | _PAGES
    key = ""
    for word in words:
        if word not in name_words and len(key) + len(word) < _LONGEST:
            key = f"{key}_{word}" if key else word
    return key


def address_key(address: str | None) -> str:
    """Returns the last characters of the id of the page in a URL; "" if the URL has none.

    >>> address_key("/dp/B07XYZ1234/ref=sr_1_5?qid=1"), address_key("/item.php?lang=2&id=40281"), address_key("/about")
    ('1234', '0281', '')
    >>> address_key("/slredirect/ref=ad_2?id=560928703&url=%2Fdp%2FB07XYZ1234%2Fref%3Dad_2")
    '1234'
    """
    identifiers = [identifier for segment in _segments(address) for identifier in _IDENTIFIER.findall(segment)]
    if identifiers:
        return str(max(reversed(identifiers), key=len)[-_TAIL:]).lower()
    query = _destination(address or "").partition("#")[0].partition("?")[2]
    identifiers = [part for value in _IDENTIFIED.findall(query) for part in _IDENTIFIER.findall(value)]
    return identifiers[0][-_TAIL:].lower() if identifiers else ""


@functools.lru_cache(_ADDRESSES_KEPT)  # needed many times while the elements of a page are named
def _segments(address: str | None) -> list[str]:
    """Returns the parts of a URL's path, without those such as `ref=sr_1_5`, which tell how the visitor came there."""
    if not address or address.lstrip()[:11].lower() == "javascript:":
        return []
    path = _HOST.sub("", _destination(address).partition("#")[0].partition("?")[0])
    return [
        segment for segment in (unquote(path) if "%" in path else path).split("/") if segment and "=" not in segment
    ]


def _destination(address: str) -> str:
    """Returns the destination of a URL that redirects, as URLs of advertisements do to count the click."""
    match = _REDIRECT.search(address) if "url=" in address.lower() else None
    return unquote(match[1]) if match else address


def without_remarks(texts: list[str], alt: str, address: str | None, title: str | None = None) -> list[bool]:
    """Returns for each text of a link whether it is more than a remark.

    If the URL and the image's description have at least half of the words of one text, short texts without any of their
    words are remarks.
    """
    if len(texts) == 1 and not (alt and len(texts[0]) <= _LONGEST_REMARK):
        return [True]
    path = _plain(" ".join(_segments(address)))
    description = path + " " + _plain(alt)
    shares = [_share(text, description) for text in texts]
    if max(shares) >= _MOSTLY:
        return [share > 0 or len(text) > _LONGEST_REMARK for share, text in zip(shares, texts, strict=True)]
    is_described = alt and (alt == title or _share(alt, path) >= _MOSTLY)  # the image shows where the link leads
    return [len(texts) > 1 or shares[0] > 0 or not is_described] * len(texts)


def _share(text: str, description: str) -> float:
    """Computes the share of a text's longer words that a description contains."""
    words = _LONG_WORD.findall(_plain(text))
    return sum([word in description for word in words]) / len(words) if words else 0.0


def _plain(text: str) -> str:
    """Returns a text in lower case and without accents."""
    if text.isascii():
        return text.lower()
    return "".join([sign for sign in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(sign)])


def last_parts(targets: list[Target], labels: list[str]) -> list[str]:
    """Returns the last part of each target's name, with words that distinguish equal names within a scope."""
    lasts = [_last_part(target, label) for target, label in zip(targets, labels, strict=True)]
    scoped_names = [
        (index if target.is_container else target.scope.named, last)
        for index, (target, last) in enumerate(zip(targets, lasts, strict=True))
    ]
    added = tell_apart(scoped_names, labels, lasts, lambda index: _address(targets, index))
    return [f"{last}_{added[index]}" if index in added else last for index, last in enumerate(lasts)]


def _last_part(target: Target, label: str) -> str:
    if target.is_container:
        return ""
    last = leaf(label) or target.tag
    card = target.scope.card
    if card is not None and card.repeat and _repeats(last, leaf(card.title)):
        last = card.repeat if target.steady or not target.has_image else "image"
    return last


def _repeats(last: str, title: str) -> bool:
    """Returns whether a label repeats the title of its card or at least its first two words."""
    return last == title or ("_" in last and title.startswith(f"{last}_"))


def _address(targets: list[Target], index: int) -> str | None:
    """Returns the URL to which a target leads, or otherwise the first target in it; None if neither does."""
    target = targets[index]
    inside = targets[index + 1] if index + 1 < len(targets) else target
    return target.attributes.get("href") or (inside.attributes.get("href") if inside.outer is target else None)
