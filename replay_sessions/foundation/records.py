"""The two kinds of records that the project declares: immutable, and made by keyword.

msgspec passes `frozen` and `forbid_unknown_fields` on to subclasses, but `kw_only` must be given for each: here once.
"""

from typing import Any, dataclass_transform

import msgspec


class _KeywordOnly(msgspec.StructMeta):
    """Makes every class of it immutable, with fields that are given by keyword."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> type:
        return super().__new__(cls, name, bases, namespace, **{"frozen": True, "kw_only": True, **options})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Record(msgspec.Struct, frozen=True, kw_only=True, metaclass=_KeywordOnly):
    """A computed or logged record; keys that it does not have are ignored."""


class Config(Record, forbid_unknown_fields=True):
    """A configuration, or a file that nobody else extends: a key that it does not have is an error."""
