"""Writes the README's tables from the recorded results, or says where they differ.

  python -m benchmarks.readme            writes them
  python -m benchmarks.readme --check    writes nothing; exit code 1 where one differs

A table stands between <!-- table: NAME --> and <!-- end of table -->; what is in
it comes from benchmarks/results alone.
"""

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.readme.blocks import with_tables
from benchmarks.readme.tables import RESULTS, readme_tables
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig
from replay_sessions.store.durable_files import replace_file

__all__ = ["README", "main"]

README = Path(__file__).parents[2] / "README.md"


class Readme(msgspec.Struct, frozen=True, kw_only=True):
    """Writes a page's tables from the recorded results.

    Attributes:
        check: Only says which lines differ.
        page: The page whose tables these are.
        results: The folder of the records.
    """

    check: bool = False
    page: Path = README
    results: Path = RESULTS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 --check found a difference, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(parse_options(Readme, words, program="python -m benchmarks.readme", text=__doc__)))


def _run(given: Readme) -> int:
    try:
        before = given.page.read_text(encoding="utf-8")
        after = with_tables(before, readme_tables(given.results))
    except OSError as error:
        raise BadConfig(f"'{error.filename}' cannot be read: {error.strerror}. Give --page or --results.") from error
    if not given.check:
        replace_file(given.page, after)
        return 0
    lines = (before.splitlines(), after.splitlines())
    for line in difflib.unified_diff(*lines, f"{given.page.name} as it is", "as recorded", lineterm="", n=0):
        print(line)
    return 1 if before != after else 0


if __name__ == "__main__":
    sys.exit(main())
