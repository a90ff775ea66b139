"""Rewords msgspec's errors about a user's configuration so that they name the key and suggest the right one.

    "Object contains unknown field `step` - at `$.grpo`"  ─►  "unknown key 'grpo.step'. Did you mean 'steps'?"

Used for files that people write by hand: presets, field mappings, recipes, sweeps, changes of a page.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib.resources.abc import Traversable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.inspect import Field, LiteralType, type_info

from replay_sessions.foundation.errors import BadConfig, did_you_mean

StructT = TypeVar("StructT")
NodeT = TypeVar("NodeT")
_NEAR = 0.85  # 'type' is as near to 'types'; 'steps', of another table, is farther from 'store'
_UNKNOWN_KEY = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$\.?(.*)`)?", re.DOTALL)
_UNKNOWN_VALUE = re.compile(r"Invalid enum value '(.*)' - at `\$.*?(\w+)[^\w`]*`", re.DOTALL)


def what_is_wrong(error: Exception, kind: Any) -> str:
    """Returns why the written values cannot be converted to `kind`.

    Args:
        error: The error that the conversion raised; messages about unknown keys and values are reworded.
        kind: The expected Struct.
    """
    fields = list(_find(type_info(kind), Field))
    if match := _UNKNOWN_VALUE.fullmatch(str(error)):
        literals = (_find(field.type, LiteralType) for field in fields if field.encode_name == match[2])
        values = {str(value) for field_literals in literals for literal in field_literals for value in literal.values}
        return f"{error}. {did_you_mean(match[1], values)}"
    if match := _UNKNOWN_KEY.fullmatch(str(error)):
        path = ".".join(filter(None, [match[2], match[1]]))
        if not match[2] and (
            near := get_close_matches(match[1], getattr(kind, "__struct_encode_fields__", ()), n=1, cutoff=_NEAR)
        ):
            return f"unknown key '{path}'. Did you mean '{near[0]}'?"
        for field in reversed(fields):  # a Struct inside another comes after it, so the innermost is checked first
            if match[1] in {inner.encode_name for inner in _find(field.type, Field)}:
                return f"unknown key '{path}'. It belongs to '{field.encode_name}'."
        return f"unknown key '{path}'. {did_you_mean(match[1], {field.encode_name for field in fields})}"
    return str(error)


def _find(node: Any, kind: type[NodeT]) -> Iterator[NodeT]:
    """Yields all parts of type `kind` in a type description of msgspec.inspect."""
    if isinstance(node, kind):
        yield node
    fields = getattr(node, "__struct_fields__", ())
    for inner in node if isinstance(node, tuple) else [getattr(node, field) for field in fields]:
        yield from _find(inner, kind)


def convert_fields(fields: Mapping[str, Any], kind: type[StructT], where: str) -> StructT:
    """Builds a Struct from a user's keys and values.

    Raises:
        BadConfig: A value is wrong; the error of the Struct's own checks is raised unchanged.
    """
    try:
        return msgspec.convert(fields, kind, dec_hook=lambda path, value: path(value))  # Path is the only other type
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, BadConfig):
            raise error.__cause__ from None
        raise BadConfig(f"{where}: {what_is_wrong(error, kind)}") from error


def keyword_signature(*kinds: type[msgspec.Struct], result: type) -> Signature:
    """Builds the signature of a function that takes the fields of Structs as keywords, for `help` and notebooks."""
    fields = {field.name: field for kind in kinds for field in msgspec.structs.fields(kind)}
    keywords = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is msgspec.NODEFAULT else field.default,
            annotation=field.type,
        )
        for name, field in fields.items()
    ]
    return Signature(keywords, return_annotation=result)


def toml_names(folder: Traversable) -> list[str]:
    """Returns the names of the TOML files in a folder of a package, without their suffix."""
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def load_toml(kind: type[StructT], word: str, name_or_file: str, folder: Traversable) -> StructT:
    """Reads a TOML file: one of `folder` by its name, or a user's file by its path, which ends in .toml.

    Args:
        word: The word for such a file in error messages, such as "mapping".

    Raises:
        BadConfig: The file does not exist or has the wrong content.
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
    except ValueError as error:  # the file is not UTF-8, not TOML, or not such a Struct
        raise BadConfig(f"{word} '{name_or_file}': {what_is_wrong(error, kind)}") from error
