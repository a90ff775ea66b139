"""The page "Command line": each command's help, as `--help` prints it."""

import contextlib
import io
import os
import re
from collections.abc import Iterator
from unittest.mock import patch

from benchmarks.console import PROGRAMS, main

# Further words that a program takes first; of a command that lists its own, its help does.
FURTHER = {"rank": ("merge", "submit")}
_OWN = re.compile(r"^usage: [\w -]+ [A-Z]+ \.\.\.\n\n(.*)", re.MULTILINE | re.DOTALL)


def commands() -> str:
    """A heading and the help of every command, subcommands after their own."""
    return "\n".join(map(_section, command_names()))


def command_names() -> Iterator[str]:
    """Every command without `shop-r1`, such as `import jsonl`; the first is empty."""
    yield ""
    programs = {program for program, _ in PROGRAMS.values()}
    for name, (program, _) in PROGRAMS.items():
        yield name
        own = _OWN.search(help_text(name))
        listed = re.findall(r"^  ([a-z]\S*)  ", own[1], re.MULTILINE) if own else FURTHER.get(name, ())
        yield from (f"{name} {further}" for further in listed if f"{program} {further}" not in programs)


def help_text(command: str, flag: str = "--help") -> str:
    """What `--help`, or `--help-all`, prints on a terminal of 80 columns."""
    with contextlib.redirect_stdout(io.StringIO()) as text, patch.dict(os.environ, COLUMNS="80"):
        main([*command.split(), flag])
    return text.getvalue()


def _section(command: str) -> str:
    level = "###" if " " in command else "##"
    return f"{level} {f'shop-r1 {command}'.strip()}\n\n```text\n{help_text(command)}```\n"
