"""From the words of a command line to a command's options, the same way for every command of the project.

    words ─► subcommand ─► tyro ─► the command's options, a frozen msgspec.Struct ─► its body ─► exit code

The Struct is all that a command writes down: its fields are the flags, their defaults the defaults, its docstring says
what they mean. `--help` prints a text with examples above them. A wrong call is a BadConfig, told in one line.

Exit codes: 0 done, 1 a check found faults, 2 the call or its input was wrong, 130 stopped by Ctrl-C.
"""

import contextlib
import errno
import io
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import getdoc
from textwrap import fill
from typing import Any, TypeVar

import tyro
from tyro.extras import subcommand_cli_from_dict

from replay_sessions.errors import BadConfig, ShopR1Error, did_you_mean

__all__ = ["choose", "parse_known_options", "parse_options", "run_command"]

OptionsT = TypeVar("OptionsT")

_MARKERS = (
    tyro.conf.FlagCreatePairsOff,  # --overwrite alone, without --no-overwrite beside it
    tyro.conf.AvoidSubcommands,  # an optional table of options is flags too
)
_HELP = ("-h", "--help")
_HELP_WIDTH = 80  # tyro's own
_RULE = "─╯- "  # a line of these ends a section; without borders where the terminal's encoding has none
_PREFIX = re.compile(r"^Error parsing (\w+: )?")  # of our own checks, which name the key themselves
_OPTION, _HELP_OF_OPTION = 4 * " ", 8 * " "  # how far tyro indents them where it tells what is wrong


def run_command(body: Callable[[], int | None]) -> int:
    """Runs a command and returns its exit code: a ShopR1Error is one line and 2, Ctrl-C is one line and 130.

    So is a disk that is full, whatever was written, standard output included.
    """
    try:
        code = body() or 0
        sys.stdout.flush()
        return code
    except SystemExit as done:  # --help
        return int(done.code or 0)
    except ShopR1Error as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _drop_output()
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        sys.stderr.write(f"error: cannot write {error.filename or 'the output'}: {os.strerror(error.errno)}\n")
        try:
            sys.stdout.flush()
        except OSError:
            _drop_output()
        return 2


def _drop_output() -> None:
    """What is still buffered goes nowhere: Python would try to write it once more at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def choose(
    kind: str, known: Mapping[str, str], words: Sequence[str], *, program: str, text: str | None
) -> tuple[str, list[str]]:
    """Takes the name of a subcommand from the front of the words; `--help` lists all with what they do.

    Returns:
        The name and the words after it.

    Raises:
        BadConfig: There is no such name, or none was given.
    """
    name, *rest = words or [""]
    if name in known:
        return name, rest
    if name not in _HELP:
        given = f"unknown {kind} {name!r}. {did_you_mean(name, known)}" if name else f"missing: {kind.upper()}"
        raise BadConfig(f"{given} (see `{program} --help`)")
    _print_text(text)
    listed = {name: _with_docstring(summary) for name, summary in known.items()}
    subcommand_cli_from_dict(listed, prog=program, description="", args=["--help"])
    raise AssertionError("--help ends the command")


def parse_options(
    options: type[OptionsT],
    words: Sequence[str],
    *,
    program: str,
    text: str | None = None,
    default: OptionsT | None = None,
    can_be_none: bool = False,
) -> OptionsT:
    """The options of a command.

    Args:
        options: A frozen Struct whose fields are the flags and whose docstring says what they mean.
        words: What the user gave after the program's name.
        program: As the user calls it.
        text: What `--help` says before it lists the flags; None: the head of the Struct's docstring.
        default: Values in place of the Struct's own defaults.
        can_be_none: Flags whose default is a value may be given the word None.

    Raises:
        BadConfig: The call is wrong.
    """
    if any(word in _HELP for word in words):
        _print_text(text or (getdoc(options) or "").partition("\n\nAttributes:")[0])
    parsed: OptionsT = _call_tyro(
        options,
        words,
        program,
        default=tyro.MISSING_NONPROP if default is None else default,
        config=_MARKERS if can_be_none else (*_MARKERS, tyro.conf.DisallowNone),
    )
    return parsed


def parse_known_options(options: type[OptionsT], words: Sequence[str], *, program: str) -> tuple[OptionsT, list[str]]:
    """The options that decide what further options there are, and the words that are none of them."""
    parsed: tuple[OptionsT, list[str]] = _call_tyro(
        options, words, program, config=(*_MARKERS, tyro.conf.DisallowNone), add_help=False, return_unknown_args=True
    )
    return parsed


def _call_tyro(options: Any, words: Sequence[str], program: str, **arguments: Any) -> Any:
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            return tyro.cli(options, prog=program, description="", args=words, **arguments)
    except SystemExit as done:
        if not done.code:
            raise
        raise BadConfig(f"{_one_line(told.getvalue())} (see `{program} --help`)") from None


def _print_text(text: str | None) -> None:
    """Prose is wrapped; a paragraph with indented lines, such as examples, stays as it is."""
    for paragraph in (text or "").strip().split("\n\n"):
        sys.stdout.write(paragraph if "\n " in f"\n{paragraph}" else fill(paragraph, _HELP_WIDTH))
        sys.stdout.write("\n\n")


def _with_docstring(summary: str) -> Callable[[], None]:
    """Tyro lists functions by their docstrings."""

    def listed() -> None: ...

    listed.__doc__ = summary
    return listed


def _one_line(box: str) -> str:
    r"""What tyro says of a wrong call in a box with sections, on one line and without the help on each option.

    >>> _one_line("╭─ Title ────╮\n│ Missing:   │\n│     --out  │\n│         It │\n╰────────────╯")
    'Missing: --out'
    """
    sections: list[tuple[list[str], list[str]]] = [([], [])]  # the text, and the options named beneath it
    for line in (line[2:].rstrip(" │") for line in box.splitlines()[1:]):
        if not line.strip(_RULE):
            sections.append(([], []))
        elif not line.startswith(_OPTION):
            sections[-1][0].append(line)
        elif not line.startswith(_HELP_OF_OPTION):
            sections[-1][1].append(line.strip())
    said = []
    for text, options in sections:
        head = " ".join(text)
        if head == "Argument helptext:":
            said.append(f"expected {options[0]}")
        elif head and not head.startswith("For full helptext"):
            said.append(_PREFIX.sub("", f"{head} {', '.join(options)}".strip(". ")))
    return "; ".join(said)
