"""What people are called, in some fifty languages: the given names and surnames that Mimesis and Faker bring.

Both are read where a page first needs them. Neither says how common a name is, and many are words too: those that
are in Mimesis' lists of words or Faker's count only where several languages have them. So a name in a list is one sign
among others (`signs.py`), never enough by itself.
"""

import functools
import json
import pkgutil
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module, resources
from typing import Any, NamedTuple

from faker.providers import lorem, person

from replay_sessions.private_data.spans import lower, word_list

_ACCENT = re.compile("[\u0300-\u036f]")
_LANGUAGES_OF_NAMES = 4  # from so many on a name counts though it is a word too


class Gazetteer(NamedTuple):
    """Words in small letters: of given names, of surnames, those that are neither, and names that are words too."""

    given: frozenset[str]
    family: frozenset[str]
    words: frozenset[str]
    both: frozenset[str]


@functools.lru_cache(1 << 16)
def fold(word: str) -> str:
    """A word in small letters and without accents, by which people may write a name or leave them out."""
    return _fold(word)


def _fold(text: str) -> str:
    return text.lower() if text.isascii() else _ACCENT.sub("", unicodedata.normalize("NFD", lower(text)))


@functools.cache
def read_gazetteer() -> Gazetteer:
    """All names, read once."""
    given: Counter[str] = Counter()
    family: Counter[str] = Counter()
    words: set[str] = set()
    own = {fold(word) for word in word_list("words_and_names", "surnames_and_words")}
    for lists in (*_mimesis(), *_faker()):
        names: dict[bool, set[str]] = {True: set(), False: set()}
        for key, texts in lists:
            if key in ("words", "word_list", "color", "city", "day", "month"):
                words.update(_fold("\n".join(_texts(texts))).split("\n"))
            elif key == "country":
                words.update(_fold("\n".join(_texts(texts))).split())
            elif "first_name" in key or key == "names":
                names[True].update(_texts(texts))
            elif "last_name" in key or key == "surnames":
                names[False].update(_texts(texts))
        for is_given, counts in ((True, given), (False, family)):
            counts.update({word for word in _fold("\n".join(names[is_given])).split() if word[-1] != "."})
    sure = [
        frozenset(
            name
            for name, count in counts.items()
            if name not in own and (name not in words or count >= _LANGUAGES_OF_NAMES)
        )
        for counts in (given, family)
    ]
    return Gazetteer(sure[0], sure[1], frozenset(words.difference(own, *sure)), frozenset(own))


def _mimesis() -> Iterator[Iterable[tuple[str, Any]]]:
    for locale in (resources.files("mimesis") / "datasets").iterdir():
        for name in ("person", "text", "address", "datetime"):
            file = locale / f"{name}.json"
            if file.is_file():
                yield json.loads(file.read_bytes()).items()


def _faker() -> Iterator[Iterable[tuple[str, Any]]]:
    for package in (person, lorem):
        for module in pkgutil.iter_modules(package.__path__):
            yield vars(import_module(f"{package.__name__}.{module.name}").Provider).items()


def _texts(names: Any) -> list[str]:
    """The texts in lists, in dictionaries of lists and in Faker's dictionaries of weights."""
    if isinstance(names, str):
        return [names]
    if isinstance(names, dict):
        names = [key if isinstance(value, float) else value for key, value in names.items()]
    if not isinstance(names, list | tuple):
        return []
    texts = [name for name in names if isinstance(name, str)]
    return texts if len(texts) == len(names) else [text for name in names for text in _texts(name)]
