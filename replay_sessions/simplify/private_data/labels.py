"""The words of words.toml: by which words pages announce private data."""

import functools
import tomllib
from importlib import resources

__all__ = ["word_list"]


@functools.cache
def word_list(name: str) -> tuple[str, ...]:
    """One of the lists of words.toml."""
    return tuple(_lists()[name])


@functools.cache
def _lists() -> dict[str, list[str]]:
    file = resources.files("replay_sessions.simplify.private_data") / "words.toml"
    return tomllib.loads(file.read_text("utf-8"))
