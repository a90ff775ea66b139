"""Plug-ins: classes and functions that are named as text, `module:Name`, and imported only when they are asked for.

So a registry can name what needs an extra package, or what would otherwise import the registry.
"""

import importlib
from typing import Any

import msgspec

__all__ = ["Entry", "load"]


class Entry(msgspec.Struct, frozen=True):
    """What a registry says of a name: `module:Name`, and what that is for in one line."""

    target: str
    summary: str


def load(target: str) -> Any:
    """What `module:Name` names.

    >>> load("fractions:Fraction")
    <class 'fractions.Fraction'>

    Raises:
        ImportError: No such module, or one that it needs is missing.
        AttributeError: The module has nothing of that name.
    """
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)
