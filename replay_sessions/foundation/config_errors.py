"""What msgspec refuses in a user's configuration, in words that name the key and the one that was meant.

    "Object contains unknown field `step` - at `$.grpo`"  ─►  "unknown key 'grpo.step'. Did you mean 'grpo.steps'?"

For the files that people write by hand: presets, field mappings, recipes.
"""

import re
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.inspect import CollectionType, DictType, LiteralType, StructType, Type, UnionType, type_info

from replay_sessions.foundation.errors import BadConfig, did_you_mean

StructT = TypeVar("StructT")
REMOVED = {"samples": "95% intervals are CR2 over users everywhere, which draws no bootstrap samples; leave it out"}
_UNKNOWN_KEY = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$\.?(.*)`)?", re.DOTALL)
_UNKNOWN_VALUE = re.compile(r"Invalid enum value '(.*)' - at `\$\.?(.*)`", re.DOTALL)
_PART_OF_PATH = re.compile(r"[^.\[\]]+|\[[^\]]*\]")  # of `rule[...].select`: a key, or some item of a list or table


def what_is_wrong(error: Exception, kind: Any, renamed: Mapping[str, str] | None = None) -> str:
    """Why `kind` could not be made of what was written.

    Args:
        error: What reading it raised; messages about unknown keys and values are reworded.
        kind: The Struct that was asked for.
        renamed: Former names of keys with those of their tables, such as `grpo.clip`, and what they are now.
    """
    if match := _UNKNOWN_VALUE.fullmatch(str(error)):
        literals = [inner for inner in _types_at(kind, match[2]) if isinstance(inner, LiteralType)]
        values = [str(value) for literal in literals for value in literal.values]
        return f"{error}. {did_you_mean(match[1], values)}" if values else str(error)
    match = _UNKNOWN_KEY.fullmatch(str(error))
    if not match:
        return str(error)
    key, path = match[1], match[2] or ""
    prefix = f"{path}." if path else ""
    if key in REMOVED:
        return f"'{prefix}{key}' is gone: {REMOVED[key]}."
    if new := (renamed or {}).get(f"{path.rpartition('.')[2]}.{key}"):
        return f"'{prefix}{key}' is now '{prefix}{new}'."
    tables = [table for table in _types_at(kind, path) if isinstance(table, StructType)]
    names = [field.encode_name for table in tables for field in table.fields]
    return f"unknown key '{prefix}{key}'. {did_you_mean(key, names, prefix)}"


def convert_fields(fields: Mapping[str, Any], kind: type[StructT], where: str) -> StructT:
    """The Struct that a user's keys and values make.

    Raises:
        BadConfig: That of the Struct's own checks, or what is wrong there.
    """
    try:
        return msgspec.convert(fields, kind, dec_hook=lambda path, value: path(value))  # Path is the only other type
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, BadConfig):
            raise error.__cause__ from None
        raise BadConfig(f"{where}: {what_is_wrong(error, kind)}") from error


def toml_names(folder: Traversable) -> list[str]:
    """The names of the TOML files that come with a package."""
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def load_toml(kind: type[StructT], word: str, name_or_file: str, folder: Traversable) -> StructT:
    """What a TOML file holds: one of `folder` by its name, or a user's own by its path, which ends in .toml.

    Args:
        word: What such a file is called, such as "mapping".

    Raises:
        BadConfig: There is none, or it does not hold what it should.
    """
    is_file = name_or_file.endswith(".toml")
    if not is_file and name_or_file not in (names := toml_names(folder)):
        hint = did_you_mean(name_or_file, names)
        raise BadConfig(f"unknown {word} {name_or_file!r}. {hint} One of your own is a file that ends in .toml.")
    file = Path(name_or_file).expanduser() if is_file else folder / f"{name_or_file}.toml"
    try:
        return msgspec.toml.decode(file.read_bytes(), type=kind)
    except OSError as error:
        raise BadConfig(f"cannot read the {word} '{file}': {error.strerror}") from error
    except ValueError as error:  # what is no UTF-8, no TOML, or no Struct of this kind
        raise BadConfig(f"{word} '{name_or_file}': {what_is_wrong(error, kind)}") from error


def _types_at(kind: Any, path: str) -> Iterator[Type]:
    types = [type_info(kind)]
    for part in _PART_OF_PATH.findall(path):
        types = [inner for outer in _alternatives(types) for inner in _inside(outer, part)]
    return _alternatives(types)


def _alternatives(types: list[Type]) -> Iterator[Type]:
    for kind in types:
        yield from kind.types if isinstance(kind, UnionType) else (kind,)


def _inside(outer: Type, part: str) -> Iterator[Type]:
    if isinstance(outer, StructType):
        yield from (field.type for field in outer.fields if field.encode_name == part)
    elif isinstance(outer, CollectionType):
        yield outer.item_type
    elif isinstance(outer, DictType):
        yield outer.value_type
