"""Writes the tables of README.md and docs from the recorded results, or says where they differ.

  python -m benchmarks.studies.readme          writes them
  python -m benchmarks.studies.readme --check  exit code 1 where one differs

A table stands between <!-- table: NAME --> and <!-- end of table -->; what is in
it comes from benchmarks/results alone, and the diffs of docs/objectives.md from
train/objectives.
"""

import difflib
import sys
from pathlib import Path

from benchmarks.studies.readme.blocks import names_of_tables, with_tables
from benchmarks.studies.readme.objectives import objective_diffs
from benchmarks.studies.readme.tables import RESULTS, readme_tables
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import replace_file
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Record

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
PAGES = (
    README,
    ROOT / "docs/results.md",
    ROOT / "docs/paper_tables.md",
    ROOT / "docs/objectives.md",
    ROOT / "docs/your_gpu.md",
)


class Readme(Record):
    """Writes the tables of pages from the recorded results.

    Attributes:
        check: Only says which lines differ.
        pages: The pages whose tables these are; each table must stand on one of them.
        results: The folder of the records.
    """

    check: bool = False
    pages: tuple[Path, ...] = PAGES
    results: Path = RESULTS


def _run(options: Readme) -> int:
    tables = readme_tables(options.results) | objective_diffs()
    try:
        before = {page: page.read_text(encoding="utf-8") for page in options.pages}
        after = {page: with_tables(text, tables) for page, text in before.items()}
    except OSError as error:
        raise BadConfig(f"'{error.filename}' cannot be read: {error.strerror}. Give --pages or --results.") from error
    if missing := tables.keys() - set().union(*map(names_of_tables, before.values())):
        raise BadConfig(f"no page shows the tables {', '.join(sorted(missing))}: say where by <!-- table: NAME -->")
    for page, text in after.items():
        if options.check:
            lines = (before[page].splitlines(), text.splitlines())
            for line in difflib.unified_diff(*lines, f"{page.name} as it is", "as recorded", lineterm="", n=0):
                print(line)
        elif text != before[page]:
            replace_file(page, text)
    return 1 if options.check and after != before else 0


main = command(Readme, _run)

if __name__ == "__main__":
    sys.exit(main())
