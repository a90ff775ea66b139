"""Writes the tables of README.md and docs/results.md from the recorded results, or says where they differ.

  python -m benchmarks.readme            writes them
  python -m benchmarks.readme --check    tells where one differs: exit code 1

A table stands between <!-- table: NAME --> and <!-- end of table -->; what is in
it comes from benchmarks/results alone.
"""

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.readme.blocks import names_of_tables, with_tables
from benchmarks.readme.tables import RESULTS, readme_tables
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig
from replay_sessions.store.durable_files import replace_file

__all__ = ["PAGES", "README", "main"]

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs/results.md", ROOT / "docs/paper_tables.md")


class Readme(msgspec.Struct, frozen=True, kw_only=True):
    """Writes the tables of pages from the recorded results.

    Attributes:
        check: Only says which lines differ.
        pages: The pages whose tables these are; each table must stand on one of them.
        results: The folder of the records.
    """

    check: bool = False
    pages: tuple[Path, ...] = PAGES
    results: Path = RESULTS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 --check found a difference, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(parse_options(Readme, words, program="python -m benchmarks.readme", text=__doc__)))


def _run(given: Readme) -> int:
    tables = readme_tables(given.results)
    try:
        before = {page: page.read_text(encoding="utf-8") for page in given.pages}
        after = {page: with_tables(text, tables) for page, text in before.items()}
    except OSError as error:
        raise BadConfig(f"'{error.filename}' cannot be read: {error.strerror}. Give --pages or --results.") from error
    if missing := tables.keys() - set().union(*map(names_of_tables, before.values())):
        raise BadConfig(f"no page shows the tables {', '.join(sorted(missing))}: say where by <!-- table: NAME -->")
    for page, text in after.items():
        if given.check:
            lines = (before[page].splitlines(), text.splitlines())
            for line in difflib.unified_diff(*lines, f"{page.name} as it is", "as recorded", lineterm="", n=0):
                print(line)
        elif text != before[page]:
            replace_file(page, text)
    return 1 if given.check and after != before else 0


if __name__ == "__main__":
    sys.exit(main())
