"""Parses a command line into a command's options, in the same way for every command of the project.

    argv ─► subcommand ─► tyro ─► the command's options, a frozen msgspec.Struct ─► body(options) ─► exit code

The Struct declares the whole command: its fields are the flags, with their defaults, and its docstring explains them.
The help begins with the docstring of the command's module. A module's `main` is one line:

    main = command(Count, count, program="shop-r1 count")

`--help` fits one screen: it lists the command's own flags, one per line (help_text.py). `--help-all` is tyro's help.

Exit codes: 0 success, 1 a check found faults, 2 the call or its input was wrong, 130 stopped by Ctrl-C or SIGTERM.
"""

import codecs
import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import getdoc
from itertools import takewhile
from types import FrameType
from typing import Any, TypeVar

import msgspec
import tyro

from replay_sessions.foundation.durable_files import remedy_for
from replay_sessions.foundation.errors import BadConfig, ShopR1Error, did_you_mean
from replay_sessions.foundation.help_text import HELP_ALL, format_choices, format_short_help, list_flags, wrap
from replay_sessions.foundation.packages import with_program_path
from replay_sessions.foundation.table import plain_text

OptionsT = TypeVar("OptionsT")

_MARKERS = (
    tyro.conf.FlagCreatePairsOff,  # only --overwrite, without --no-overwrite
    tyro.conf.AvoidSubcommands,  # an optional nested Struct becomes flags, too
)
JSON_OBJECT = tyro.constructors.PrimitiveConstructorSpec(
    nargs=1,
    metavar="JSON",
    instance_from_str=lambda texts: msgspec.json.decode(texts[0], type=dict[str, Any]),
    is_instance=lambda value: isinstance(value, dict),
    str_from_instance=lambda value: [msgspec.json.encode(value).decode()],
)
"""A flag whose value is a JSON object, for Annotated."""
_HELP = {"-h", "--help", HELP_ALL}
STOPPED = 130  # the exit code
STOPS = (signal.SIGINT, signal.SIGTERM)
Handler = Callable[[int, FrameType | None], None]


def command(
    options: type[OptionsT],
    body: Callable[[OptionsT], int | None],
    *,
    program: str | None = None,
    can_be_none: bool = False,
) -> Callable[..., int]:
    """Returns the `main` of a command, which parses the arguments after the program's name and runs `body`.

    Args:
        options: Struct of the command's options; see `parse_options`.
        body: Function that runs the command. Returning None means success, like 0. The help prints the docstring of
            its module.
        program: The command as the user calls it. If None, it is `python -m` and the module of `body`.
        can_be_none: See `parse_options`.

    Returns:
        A function that takes the arguments, by default those of the process, and returns the exit code.
    """

    module = sys.modules[body.__module__]
    # A module that Python runs is called __main__; only its specification has the real name.
    name = (module.__spec__.name if module.__spec__ else module.__name__).removesuffix(".__main__")
    called = program or f"python -m {name}"

    def run(argv: Sequence[str]) -> int | None:
        return body(parse_options(options, argv, program=called, text=module.__doc__, can_be_none=can_be_none))

    run.__module__ = body.__module__
    return program_of(run)


def program_of(run: Callable[[Sequence[str]], int | None]) -> Callable[..., int]:
    """Returns the `main` of a program, which calls `run` with its arguments, by default those of the process."""

    def main(arguments: Sequence[str] | None = None) -> int:
        argv = sys.argv[1:] if arguments is None else arguments
        return run_command(lambda: run(argv))

    main.__module__ = run.__module__
    return main


def run_command(body: Callable[[], int | None]) -> int:
    """Runs a command and returns its exit code.

    A ShopR1Error or an error of the operating system (a closed folder, a full disk) prints one line and returns 2.
    Ctrl-C, or the SIGTERM that a batch system sends before it kills, prints one line and returns 130.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="in_ascii")  # a terminal or pipe that is not UTF-8
    try:
        with handling(signal.default_int_handler, [signal.SIGTERM]):
            code = body() or 0
        sys.stdout.flush()
        return code
    except SystemExit as end:  # from --help, or from a wrong call that tyro has explained
        return int(end.code or 0)
    except ShopR1Error as error:
        # The message may contain text of an agent or a file.
        sys.stderr.write(with_program_path(f"error: {plain_text(str(error))}\n"))
        return 2
    except KeyboardInterrupt as stop:
        sys.stderr.write(with_program_path(": ".join(["stopped", *map(str, stop.args)]) + "\n"))
        return STOPPED
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        _drop_output()
        return 0
    except OSError as error:
        sys.stderr.write(f"error: {plain_text(_describe_refusal(error))}\n")
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            return 2
        _drop_output()
        return 2


def _write_in_ascii(error: UnicodeError) -> tuple[bytes, int]:
    """Handles what an encoding cannot write: a minus becomes a hyphen, another character is escaped as on stderr."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].replace("−", "-").replace("–", "-")
    return text.encode("ascii", "backslashreplace"), error.end


codecs.register_error("in_ascii", _write_in_ascii)


def _describe_refusal(error: OSError) -> str:
    if not error.strerror:
        return f"{type(error).__name__}: {error}"
    path = error.filename or "the output"
    return f"the system refuses '{path}' ({error.strerror}): {remedy_for(path)}"


def _drop_output() -> None:
    """Discards buffered output, because Python would try to write it again at exit and print an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def asks_for_help(argv: Sequence[str]) -> bool:
    return not _HELP.isdisjoint(argv)


def choose(
    kind: str, entries: Mapping[str, object], argv: Sequence[str], *, program: str, text: str | None
) -> tuple[str, list[str]]:
    """Splits arguments into a name and those after it; prints the names if there are none, or for help.

    Args:
        kind: What the names stand for, such as "command".
        entries: For each name, its summary or a function whose docstring is the summary.

    Raises:
        BadConfig: The name is unknown.
    """
    name, *arguments = argv or [""]
    if name in entries:
        return name, arguments
    if name and name not in _HELP:
        raise BadConfig(f"unknown {kind} {name!r}. {did_you_mean(name, entries)} (see `{program} --help`)")
    summaries = {name: entry if isinstance(entry, str) else getdoc(entry) or "" for name, entry in entries.items()}
    sys.stdout.write(f"{wrap(text)}usage: {program} {kind.upper()} ...\n\n{format_choices(summaries)}")
    raise SystemExit(0 if name else 2)


def parse_options(
    options: type[OptionsT],
    argv: Sequence[str],
    *,
    program: str,
    text: str | None = None,
    default: OptionsT | None = None,
    can_be_none: bool = False,
) -> OptionsT:
    """Parses a command line into the options of a command.

    Args:
        options: A frozen Struct. Its fields are the flags, and its docstring explains them.
        argv: The arguments after the program's name.
        program: The command as the user calls it.
        text: Text that the help prints before the flags. If None, it is the head of the Struct's docstring.
        default: Values that replace the Struct's own defaults.
        can_be_none: Whether flags with a non-None default accept the word None.

    Raises:
        BadConfig: The Struct rejects the values.
        SystemExit: The call is wrong and tyro has explained it (code 2), or the user asked for help (code 0).
    """
    text = text or (getdoc(options) or "").partition("\n\nAttributes:")[0]
    if HELP_ALL in argv:
        sys.stdout.write(wrap(text))
        argv = ["--help"]
    elif asks_for_help(argv):
        sys.stdout.write(format_short_help(options, program=program, text=text, default=default))
        raise SystemExit
    check_flags(argv, list_flags(options, default), program)
    return _call_tyro(  # type: ignore[no-any-return]
        options,
        argv,
        program,
        default=tyro.MISSING_NONPROP if default is None else default,
        config=_MARKERS if can_be_none else (*_MARKERS, tyro.conf.DisallowNone),
    )


def check_flags(argv: Sequence[str], flags: Sequence[str], program: str) -> None:
    """Raises BadConfig for a flag that is not among `flags` and nearly one of them; tyro explains all other mistakes.

    >>> check_flags(["--out", "x", "--", "--output", "y"], ["--agents", "--out"], "rank")
    >>> check_flags(["--agent", "random"], ["--agents", "--out"], "rank")
    Traceback (most recent call last):
    ...
    replay_sessions.foundation.errors.BadConfig: unknown flag --agent. Did you mean '--agents'? (see `rank --help`)
    """
    for word in takewhile(lambda word: word != "--", argv):  # behind it stand the flags of another program
        flag = word.partition("=")[0].replace("_", "-")
        if not flag.startswith("--") or "." in flag or flag in flags or flag in _HELP:
            continue
        if (hint := did_you_mean(flag, flags)).startswith("Did you mean"):
            raise BadConfig(f"unknown flag {flag}. {hint} (see `{program} --help`)")


def parse_leading_options(options: type[OptionsT], argv: Sequence[str], *, program: str) -> tuple[OptionsT, list[str]]:
    """Returns the options that decide which further options exist, and the remaining arguments."""
    parsed: tuple[OptionsT, list[str]] = _call_tyro(
        options, argv, program, config=(*_MARKERS, tyro.conf.DisallowNone), add_help=False, return_unknown_args=True
    )
    return parsed


def _call_tyro(options: Any, argv: Sequence[str], program: str, **arguments: Any) -> Any:
    stderr = io.StringIO()
    try:
        with contextlib.redirect_stderr(stderr):
            return tyro.cli(options, prog=program, description="", args=argv, **arguments)
    except SystemExit as end:
        # tyro boxes every ValueError of a Struct's own checks; ours already name the flag and the remedy in one line.
        if isinstance(end.__context__, ShopR1Error):
            raise end.__context__ from None
        sys.stderr.write(stderr.getvalue())
        raise


@contextlib.contextmanager
def handling(handler: Handler, signals: Sequence[signal.Signals] = STOPS) -> Iterator[None]:
    """Calls `handler` for these signals inside the `with` block; outside the main thread it does nothing."""
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
