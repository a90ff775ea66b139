"""From the words of a command line to a command's options, the same way for every command of the project.

    words ─► subcommand ─► tyro ─► the command's options, a frozen msgspec.Struct ─► its body ─► exit code

The Struct is the whole declaration of a command: its fields are the flags, with their defaults, and its docstring
explains them. Above them `--help` prints the head of the command's module. A module's `main` is one line:

    main = command(Count, count)

`--help` fits one screen: where all there is to say does not, it lists the command's own flags in a line each, and the
tables whose keys are flags too; `--help-all` explains every flag. Where the user typed a name of console.py
(`shop-r1 rank`), help and messages show that name in place of `python -m …` (`naming`).

Exit codes: 0 done, 1 a check found faults, 2 the call or its input was wrong, 130 stopped by Ctrl-C. Signals that end a
command, Ctrl-C's and SIGTERM, are handled differently for as long as `handling` or `terminable` lasts.
"""

import contextlib
import errno
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from inspect import getdoc
from textwrap import fill
from types import FrameType, MappingProxyType
from typing import Any, TypeVar

import tyro

from replay_sessions.foundation.config_errors import REMOVED
from replay_sessions.foundation.errors import BadConfig, ShopR1Error, did_you_mean
from replay_sessions.foundation.help_text import HELP_ALL, HELP_WIDTH, get_head, shorten_flags, wrap
from replay_sessions.foundation.table import plain_text

OptionsT = TypeVar("OptionsT")

_MARKERS = (
    tyro.conf.FlagCreatePairsOff,  # --overwrite alone, without --no-overwrite beside it
    tyro.conf.AvoidSubcommands,  # an optional table of options is flags too
)
_HELP = {"-h", "--help", HELP_ALL}
_HELP_LINES = 40  # a screen
_names: ContextVar[Mapping[str, str]] = ContextVar("names", default=MappingProxyType({}))
STOPS = (signal.SIGINT, signal.SIGTERM)
Handler = Callable[[int, FrameType | None], None]


def command(
    options: type[OptionsT],
    body: Callable[[OptionsT], int | None],
    *,
    program: str | None = None,
    can_be_none: bool = False,
) -> Callable[..., int]:
    """The `main` of a command: parses the words after the program's name, runs `body` and returns the exit code.

    Args:
        options: See `parse_options`, as for `can_be_none`.
        body: Runs the command; None, like 0, is success. `--help` shows the head of its module.
        program: As the user calls it; None: `python -m` and the module of `body`.

    Returns:
        A function of the words; without them it takes those of the process.
    """

    module = sys.modules[body.__module__]
    # A module that Python runs is called __main__, and only its specification has its own name.
    name = (module.__spec__.name if module.__spec__ else module.__name__).removesuffix(".__main__")
    called = program or f"python -m {name}"

    def run(words: Sequence[str]) -> int | None:
        return body(parse_options(options, words, program=called, text=module.__doc__, can_be_none=can_be_none))

    run.__module__ = body.__module__
    return program_of(run)


def program_of(run: Callable[[Sequence[str]], int | None]) -> Callable[..., int]:
    """The `main` of a program: calls `run` with the words, those of the process by default; returns the exit code."""

    def main(arguments: Sequence[str] | None = None) -> int:
        words = sys.argv[1:] if arguments is None else arguments
        return run_command(lambda: run(words))

    main.__module__ = run.__module__
    return main


def run_command(body: Callable[[], int | None]) -> int:
    """Runs a command and returns its exit code: a ShopR1Error is one line and 2, Ctrl-C is one line and 130.

    So is a disk that is full, whatever was written, standard output included.
    """
    try:
        code = body() or 0
        sys.stdout.flush()
        return code
    except SystemExit as end:  # --help, or a wrong call that tyro has explained
        return int(end.code or 0)
    except ShopR1Error as error:
        sys.stderr.write(f"error: {plain_text(as_typed(str(error)))}\n")  # it may hold what an agent or a file says
        return 2
    except KeyboardInterrupt as stop:
        sys.stderr.write(": ".join(["stopped", *map(str, stop.args)]) + "\n")
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
    """Discards buffered output: at its end Python would try to write it once more, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def naming(names: Mapping[str, str]) -> Iterator[None]:
    """Shows commands by other names while it lasts: the former name, such as `python -m agents new`, to the new."""
    former = _names.set(names)
    try:
        yield
    finally:
        _names.reset(former)


def as_typed(text: str) -> str:
    """The text with commands by the names that the user types.

    >>> with naming({"python -m agents": "shop-r1 agents", "python -m agents new": "shop-r1 new"}):
    ...     as_typed("python -m agents new, python -m agents check, python -m agents.sb3")
    'shop-r1 new, shop-r1 agents check, python -m agents.sb3'
    """
    for name in sorted(_names.get(), key=len, reverse=True):
        text = re.sub(rf"{re.escape(name)}(?![\w.])", _names.get()[name], text)
    return text


def asks_for_help(words: Sequence[str]) -> bool:
    return not _HELP.isdisjoint(words)


def choose(
    kind: str, entries: Mapping[str, object], words: Sequence[str], *, program: str, text: str | None
) -> tuple[str, list[str]]:
    """Takes the name of a subcommand from the front of the words; `--help` lists all with their summaries.

    Args:
        kind: What the names are names of, such as "command".
        entries: The summary of each name, or a function whose docstring that is.

    Returns:
        The name and the words after it.

    Raises:
        BadConfig: There is no such name, or no name.
    """
    name, *rest = words or [""]
    if name in entries:
        return name, rest
    if name not in _HELP:
        problem = f"unknown {kind} {name!r}. {did_you_mean(name, entries)}" if name else f"missing: {kind.upper()}"
        raise BadConfig(f"{problem} (see `{program} --help`)")
    sys.stdout.write(as_typed(f"{wrap(text)}usage: {program} {kind.upper()} ...\n\n"))
    indent = " " * (max(map(len, entries)) + 4)
    for name, entry in entries.items():
        summary = entry if isinstance(entry, str) else getdoc(entry) or ""
        first = f"  {name}".ljust(len(indent))
        sys.stdout.write(fill(summary, HELP_WIDTH, initial_indent=first, subsequent_indent=indent) + "\n")
    raise SystemExit


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
        BadConfig: The Struct refuses the values.
        SystemExit: The call is wrong, and tyro has printed what is (code 2); or it asked for help (code 0).
    """
    call: Callable[[Sequence[str]], OptionsT] = partial(
        _call_tyro,
        options,
        program=as_typed(program),
        default=tyro.MISSING_NONPROP if default is None else default,
        config=_MARKERS if can_be_none else (*_MARKERS, tyro.conf.DisallowNone),
    )
    if not asks_for_help(words):
        return call(words)
    text = text or (getdoc(options) or "").partition("\n\nAttributes:")[0]
    with contextlib.redirect_stdout(io.StringIO()) as flags, contextlib.suppress(SystemExit):
        call(["--help"])
    if HELP_ALL not in words and (wrap(text) + flags.getvalue()).count("\n") > _HELP_LINES:
        sys.stdout.write(as_typed(wrap(get_head(text)) + shorten_flags(flags.getvalue())))
        raise SystemExit
    sys.stdout.write(as_typed(wrap(text)))
    return call(["--help"])


def parse_leading_options(options: type[OptionsT], words: Sequence[str], *, program: str) -> tuple[OptionsT, list[str]]:
    """The options that decide what further options there are, and the words that are none of them."""
    parsed: tuple[OptionsT, list[str]] = _call_tyro(
        options, words, program, config=(*_MARKERS, tyro.conf.DisallowNone), add_help=False, return_unknown_args=True
    )
    return parsed


def _call_tyro(options: Any, words: Sequence[str], program: str, **arguments: Any) -> Any:
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return tyro.cli(options, prog=program, description="", args=words, **arguments)
    except SystemExit as end:
        # tyro catches every ValueError of a Struct's own checks; those name the flag and the remedy in one line.
        cause: BaseException | None = end
        while cause is not None:
            if isinstance(cause, ShopR1Error):
                raise cause from None
            cause = cause.__context__
        flags = {word.partition("=")[0] for word in words}
        removed = [
            f"{flag} is gone: {REMOVED[key]}"
            for key in REMOVED
            if (flag := f"--{key}") in flags and flag in errors.getvalue()
        ]
        if removed and end.code:
            raise BadConfig("; ".join(removed)) from None
        sys.stderr.write(errors.getvalue())
        raise


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM), as a batch system does before it kills."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Raises Terminated on SIGTERM while it lasts."""
    with handling(_terminate, [signal.SIGTERM]):
        yield


@contextlib.contextmanager
def handling(handler: Handler, signals: Sequence[signal.Signals] = STOPS) -> Iterator[None]:
    """Calls `handler` for these signals while it lasts; outside the main thread none can be handled, and none is."""
    before: dict[signal.Signals, Any] = {}
    try:
        for number in signals:
            before[number] = signal.signal(number, handler)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated
