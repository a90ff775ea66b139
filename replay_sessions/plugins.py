"""Plug-ins: classes and functions that are named as text, `module:Name`, and imported only when they are asked for.

So a registry can name what needs an extra package, or what would otherwise import the registry.
"""

import importlib
import inspect
from types import ModuleType
from typing import Any

import msgspec

from replay_sessions.errors import did_you_mean

__all__ = ["Entry", "NoSuchName", "load", "member"]


class Entry(msgspec.Struct, frozen=True):
    """What a registry says of a name: `module:Name`, and what that is for in one line."""

    target: str
    summary: str


class NoSuchName(AttributeError):
    """A module that has nothing of the name that was asked for; the message names what is near."""


def load(target: str) -> Any:
    """What `module:Name` names.

    >>> load("fractions:Fraction")
    <class 'fractions.Fraction'>

    Raises:
        ImportError: No such module, or one that it needs is missing.
        NoSuchName: The module has nothing of that name.
    """
    module, _, name = target.partition(":")
    return member(importlib.import_module(module), name)


def member(module: ModuleType, name: str) -> Any:
    """What a module has of a name, or NoSuchName."""
    if not hasattr(module, name):
        raise NoSuchName(did_you_mean(name, [key for key, value in vars(module).items() if inspect.isclass(value)]))
    return getattr(module, name)
