"""Things that go by a name on a command line: each is one line here, and imported only when it is asked for."""

import importlib
from collections.abc import Mapping
from typing import Any

import msgspec

from replay_sessions.errors import BadConfig, MissingExtra, did_you_mean

__all__ = ["Entry", "load", "load_entry", "summaries"]

OURS = ("replay_sessions", "shop_env", "train", "agents", "benchmarks")


class Entry(msgspec.Struct, frozen=True):
    """What a name stands for.

    Attributes:
        target: Where it stands, as module:attribute.
        summary: What it does, in one line.
    """

    target: str
    summary: str


def load(target: str, *, extra: str | None = None) -> Any:
    """What stands at module:attribute.

    Args:
        extra: The extra of this project whose packages the module needs.

    Raises:
        MissingExtra: One of them is not installed.
    """
    module, _, attribute = target.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if extra is None or (error.name or "").partition(".")[0] in OURS:
            raise
        raise MissingExtra(
            f"this needs the package '{error.name}', which the extra '{extra}' brings: pip install 'shop-r1[{extra}]'"
        ) from error


def load_entry(kind: str, entries: Mapping[str, Entry], name: str) -> Any:
    """The class or function of a name.

    Raises:
        BadConfig: Nothing of that name.
    """
    if name not in entries:
        raise BadConfig(f"unknown {kind} {name!r}. {did_you_mean(name, entries)}")
    return load(entries[name].target)


def summaries(entries: Mapping[str, Entry]) -> dict[str, str]:
    """What each name does."""
    return {name: entry.summary for name, entry in entries.items()}
