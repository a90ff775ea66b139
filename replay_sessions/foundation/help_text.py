"""Formats the text of `--help`: wrapped prose, and the flags of a command on one screen.

The flags are the fields of the command's Struct of options, each with the first sentence of its docstring entry. A
field that is a nested Struct is listed once, as `--table.*`.
"""

from collections.abc import Iterator, Mapping
from inspect import getdoc
from textwrap import fill, shorten
from typing import Annotated, Any, get_args, get_origin

import docstring_parser
import msgspec
import tyro

HELP_ALL = "--help-all"
HELP_WIDTH = 80  # as in tyro's help
_LONG_DEFAULT = 16


def wrap(text: str | None) -> str:
    """Wraps prose; a paragraph with indented lines, such as examples, is unchanged."""
    paragraphs = (text or "").strip("\n").split("\n\n")
    wrapped = (each if "\n " in f"\n{each}" else fill(each, HELP_WIDTH) for each in paragraphs)
    return "".join(f"{each}\n\n" for each in wrapped)


def format_choices(summaries: Mapping[str, str]) -> str:
    """Lists names with their summaries.

    >>> print(format_choices({"check": "Read every session."}), end="")
      check  Read every session.
    """
    indent = " " * (max(map(len, summaries)) + 4)
    lines = (
        fill(summary, HELP_WIDTH, initial_indent=f"  {name}".ljust(len(indent)), subsequent_indent=indent)
        for name, summary in summaries.items()
    )
    return "".join(f"{line}\n" for line in lines)


def format_short_help(options: Any, *, program: str, text: str, default: Any) -> str:
    """Formats the head of `text`, its first examples, the usage, and the options' own flags, one per line."""
    first, *others = text.strip("\n").split("\n\n")
    examples = [other for other in others if other.startswith("  ")][:1]
    flags = list(_list_flags(options, default))
    lines = [_format_line(flag, meaning, value) for flag, meaning, value in flags if not flag.endswith(".*")]
    positional = [flag for flag, *_ in flags if not flag.startswith("-")]
    tables = [flag for flag, *_ in flags if flag.endswith(".*")]
    further = f"Further flags: {', '.join(tables)}. " if tables else ""
    return "".join(
        [
            *map(wrap, [first, *examples]),
            f"usage: {' '.join([program, '[OPTIONS]', *positional])}\n\n",
            *lines,
            f"\n{fill(f'{further}{HELP_ALL} explains every flag.', HELP_WIDTH)}\n",
        ]
    )


def list_flags(options: Any, default: Any = None) -> list[str]:
    """Returns the flags of a command, and the metavars of its positional arguments."""
    return [flag for flag, *_ in _list_flags(options, default)]


def field_meanings(kind: type) -> dict[str, str]:
    """Returns the descriptions of a Struct's fields from the docstrings of the Struct and its bases."""
    docs = [docstring_parser.parse(getdoc(base) or "") for base in reversed(kind.__mro__)]
    return {
        name: " ".join((meaning.description or "").split())
        for doc in docs
        for meaning in doc.params
        for name in meaning.arg_name.split(", ")
    }


def _list_flags(options: Any, default: Any) -> Iterator[tuple[str, str, Any]]:
    """Yields each flag with its meaning and default; fields of a nameless nested Struct count as the options' own."""
    meanings = field_meanings(get_origin(options) or options)
    for field in msgspec.structs.fields(options):
        field_default = field.default if field.default_factory is msgspec.NODEFAULT else None
        value, meaning = getattr(default, field.name, field_default), meanings.get(field.name, "")
        kind, *markers = get_args(field.type) if get_origin(field.type) is Annotated else [field.type]
        argument: Any = next((marker for marker in markers if hasattr(marker, "prefix_name")), tyro.conf.arg())
        name = argument.name or field.name.replace("_", "-")
        if any(isinstance(each, type) and issubclass(each, msgspec.Struct) for each in (kind, *get_args(kind))):
            if argument.name == "":
                yield from _list_flags(kind, value)
            else:
                yield f"--{name}.*", meaning, value
        elif tyro.conf.Positional in markers:
            yield argument.metavar or name.upper(), meaning, value
        else:
            yield f"--no-{name}" if value is True else f"--{name}", meaning, value


def _format_line(flag: str, meaning: str, value: Any) -> str:
    """Formats a flag, the first sentence of its meaning, and its default; --help-all shows long defaults."""
    default = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    if value is msgspec.NODEFAULT:
        default = " (required)"
    elif value is None or isinstance(value, bool) or not default or len(default) > _LONG_DEFAULT:
        default = ""
    else:
        default = f" (default: {default})"
    sentence = meaning.split(". ")[0].split("; ")[0].removesuffix(".")
    line = f"  {flag:<18} "
    return line + shorten(sentence, HELP_WIDTH - len(line) - len(default), placeholder=" …") + default + "\n"
