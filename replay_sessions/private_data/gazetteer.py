"""What people are called, in some fifty languages: the given names and surnames that Mimesis and Faker bring.

Both are read where a page first needs them. Neither says how common a name is, and many are words too: those that
are in Mimesis' lists of words or Faker's count only where several languages have them. So a name in a list is one sign
among others (`signs.py`), never enough by itself.
"""

import functools
import json
import pkgutil
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module, resources
from typing import Any, NamedTuple

from faker.providers import lorem, person

from replay_sessions.private_data.spans import word_list

_LANGUAGES_OF_NAMES = 4  # from so many on a name counts though it is a word too


class Gazetteer(NamedTuple):
    """Words in small letters: of given names, of surnames, those that are neither, and names that are words too."""

    given: frozenset[str]
    family: frozenset[str]
    words: frozenset[str]
    both: frozenset[str]


@functools.cache
def read_gazetteer() -> Gazetteer:
    """All names, read once."""
    given: Counter[str] = Counter()
    family: Counter[str] = Counter()
    words: set[str] = set()
    own = {word.lower() for word in word_list("words_and_names", "surnames_and_words")}
    for lists in (*_mimesis(), *_faker()):
        names: dict[bool, set[str]] = {True: set(), False: set()}
        for key, texts in lists:
            if key in ("words", "word_list", "color", "city"):
                words.update(text.lower() for text in _texts(texts))
            elif key == "country":
                words.update(word for text in _texts(texts) for word in text.lower().split())
            elif "first_name" in key or key == "names":
                names[True].update(_texts(texts))
            elif "last_name" in key or key == "surnames":
                names[False].update(_texts(texts))
        for is_given, counts in ((True, given), (False, family)):
            counts.update({word for name in names[is_given] for word in name.lower().split() if word[-1] != "."})
    sure = [
        frozenset(
            name for name, count in counts.items()
            if name not in own and (name not in words or count >= _LANGUAGES_OF_NAMES)
        )
        for counts in (given, family)
    ]
    return Gazetteer(*sure, frozenset(words.difference(own, *sure)), frozenset(own))


def _mimesis() -> Iterator[Iterable[tuple[str, Any]]]:
    for locale in (resources.files("mimesis") / "datasets").iterdir():
        for name in ("person", "text", "address"):
            file = locale / f"{name}.json"
            if file.is_file():
                yield json.loads(file.read_bytes()).items()


def _faker() -> Iterator[Iterable[tuple[str, Any]]]:
    for package in (person, lorem):
        for module in pkgutil.iter_modules(package.__path__):
            yield vars(import_module(f"{package.__name__}.{module.name}").Provider).items()


def _texts(names: Any) -> Iterator[str]:
    """The texts in lists, in dictionaries of lists and in Faker's dictionaries of weights."""
    if isinstance(names, str):
        yield names
    elif isinstance(names, dict):
        for key, value in names.items():
            yield from _texts(key if isinstance(value, float) else value)
    elif isinstance(names, list | tuple):
        for name in names:
            yield from _texts(name)
