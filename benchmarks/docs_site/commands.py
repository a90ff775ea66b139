"""Generates the page "Command line": the help of each command, as `--help` prints it."""

import contextlib
import io
import os
from collections.abc import Iterator
from unittest.mock import patch

from benchmarks.console import PROGRAMS, main
from replay_sessions.exporters import EXPORTERS
from replay_sessions.foundation.packages import DISTRIBUTION
from replay_sessions.importers import IMPORTERS

# Subcommands that a program takes as its first word.
FURTHER = {
    "import": tuple(IMPORTERS),
    "export": tuple(EXPORTERS),
    "agents": ("list", "check"),
    "serve": ("openenv", "tasks"),
}


def commands() -> str:
    """Returns a heading and the help of every command, each followed by its subcommands."""
    return "\n".join(map(_format_section, command_names()))


def command_names() -> Iterator[str]:
    """Yields every command without `shop-r1`, such as `import jsonl`; the first is empty."""
    yield ""
    for name in PROGRAMS:
        yield name
        yield from (f"{name} {further}" for further in FURTHER.get(name, ()))


def help_text(command: str, flag: str = "--help") -> str:
    """Returns the text that `--help`, or `--help-all`, prints on a terminal of 80 columns."""
    with contextlib.redirect_stdout(io.StringIO()) as text, patch.dict(os.environ, COLUMNS="80"):
        main([*command.split(), flag])
    return text.getvalue()


def _format_section(command: str) -> str:
    level = "###" if " " in command else "##"
    return f"{level} {f'{DISTRIBUTION} {command}'.strip()}\n\n```text\n{help_text(command)}```\n"
