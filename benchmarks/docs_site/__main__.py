"""Writes the tables of README.md and docs from the recorded results, or reports where they differ.

  python -m benchmarks.docs_site          writes the tables
  python -m benchmarks.docs_site --check  exit code 1 if a table differs

A table stands between <!-- table: RECORD | COLUMN, COLUMN | ROW; ROW --> and
<!-- end of table -->. Its content comes from benchmarks/results alone.
"""

import difflib
import sys
from pathlib import Path

from benchmarks.docs_site.blocks import fill_tables
from benchmarks.docs_site.tables import RESULTS, get_table
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import replace_file
from replay_sessions.foundation.records import Record

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", RESULTS / "README.md", *sorted((ROOT / "docs").glob("*.md")))


class DocsSite(Record):
    """Writes the tables of pages from the recorded results.

    Attributes:
        check: Only print the lines that differ.
        pages: The pages to write.
        results: The folder of the records.
    """

    check: bool = False
    pages: tuple[Path, ...] = PAGES
    results: Path = RESULTS


def _run(options: DocsSite) -> int:
    differing = 0
    for page in options.pages:
        before = page.read_text(encoding="utf-8")
        # hook.py fills the tables without a folder in their name from the code, when the site is built.
        after = fill_tables(
            before, lambda name, columns, rows: get_table(options.results, name, columns, rows) if "/" in name else None
        )
        if after != before:
            differing += 1
            lines = (before.splitlines(), after.splitlines())
            print(*difflib.unified_diff(*lines, page.name, "as recorded", lineterm="", n=0), sep="\n")
            if not options.check:
                replace_file(page, after)
    return 1 if options.check and differing else 0


main = command(DocsSite, _run)

if __name__ == "__main__":
    sys.exit(main())
