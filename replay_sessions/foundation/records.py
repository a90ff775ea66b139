"""The two base classes of the project's records, which are immutable and built by keyword.

msgspec passes `frozen` and `forbid_unknown_fields` on to subclasses, but `kw_only` must be set for each class. The
metaclass sets it here.
"""

from typing import Any, dataclass_transform

import msgspec


class _KeywordOnly(msgspec.StructMeta):
    """A metaclass that makes each of its classes immutable, with keyword-only fields."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> type:
        return super().__new__(cls, name, bases, namespace, **{"frozen": True, "kw_only": True, **options})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Record(msgspec.Struct, frozen=True, kw_only=True, metaclass=_KeywordOnly):
    """A computed or logged record; unknown keys are ignored."""


class Config(Record, forbid_unknown_fields=True):
    """A configuration, or a file that only this project writes; an unknown key is an error."""
