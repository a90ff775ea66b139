"""Writes a finished training run or leaderboard as one HTML file: the ranking with
intervals, the kinds of errors, and a viewer for every session.

  shop-r1 report runs/mine
  shop-r1 report boards/mine --out mine.html
  shop-r1 report boards/mine --store stores/moved
  shop-r1 report runs/mine --tables tables

The file needs no network and no other file: open it in a browser or send it to
somebody. It contains the pages of the sessions, so it is as private as the store.
--tables also writes paper.tex (chosen columns, the best in bold, intervals as ±)
and each table in full as CSV.
"""

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import tyro

from benchmarks.report.evidence import judge, read_evidence
from benchmarks.report.paper_table import chosen_columns
from benchmarks.report.session_data import session_data
from benchmarks.report.step_tables import differences, headline
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import replace_file
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.progress import track
from replay_sessions.foundation.records import Record

MEGABYTE = 1_000_000
FOR_FIGURES = 1_500_000  # an upper bound on the characters that the file needs beside its sessions


class ReportOptions(Record):
    """Writes the report of a run or a leaderboard.

    Attributes:
        folder: The --out of a training run or of a leaderboard.
        out: The file to write. If None, report.html in that folder.
        store: The store of the evaluation, if it was moved. If None, the path that the folder names.
        max_megabytes: The maximum size of the file; sessions that do not fit are left out and counted.
        tables: Also write paper.tex and every table as CSV into this folder.
        columns: The metrics in paper.tex, by the names of results.json.
        beside: Other training runs, for their curves in the same plots.
        trust: The functions that the folder names as reward or metrics and that may be run.
        open: Show the file in the browser.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN|BOARD")]]
    out: Path | None = None
    store: str | None = None
    max_megabytes: float = 20.0
    tables: Path | None = None
    columns: tuple[str, ...] = ("exact_accuracy", "type_accuracy", "type_f1_macro", "mean_reward")
    beside: tuple[Path, ...] = ()
    trust: tuple[str, ...] = ()
    open: bool = False

    def __post_init__(self) -> None:
        if not self.max_megabytes * MEGABYTE > FOR_FIGURES:  # the negation also catches NaN
            raise BadConfig(
                f"--max-megabytes is {self.max_megabytes:g}; the metrics alone may need {FOR_FIGURES / MEGABYTE:g}"
            )


def _report(options: ReportOptions) -> None:
    with requires_extra("report"):
        from benchmarks.report.page import all_tables, render_page, write_tables  # noqa: PLC0415 - may be missing
    columns = chosen_columns(options.columns)
    evidence = read_evidence(options.folder, options.beside, options.store, options.trust)
    judged = {label: judge(evidence, label) for label in track(evidence.labels, "agents")}
    compared = differences(evidence)
    tables = all_tables(evidence, compared, judged)
    data = session_data(evidence, judged, max_characters=int(options.max_megabytes * MEGABYTE) - FOR_FIGURES)
    page: str = render_page(evidence, compared, judged, headline(evidence, compared, judged), tables, data)
    out = options.out or options.folder / "report.html"
    replace_file(out, page)
    if options.tables is not None:
        for path in write_tables(evidence, compared, tables, columns, options.tables):
            print(path)
    if data.left_out:
        print(f"{data.left_out} sessions did not fit into {options.max_megabytes:g} MB", file=sys.stderr)
    print(out)
    if options.open:
        webbrowser.open(out.resolve().as_uri())


main = command(ReportOptions, _report, program="shop-r1 report")

if __name__ == "__main__":
    sys.exit(main())
