"""Writes a finished training run or leaderboard as one HTML file: who predicts
best, how sure that is, where it goes wrong, and every session to step through.

  python -m benchmarks.report runs/mine
  python -m benchmarks.report boards/mine --out mine.html
  python -m benchmarks.report boards/mine --store stores/moved
  python -m benchmarks.report runs/mine --tables tables

The file needs no network and no other file: open it in a browser, send it to
somebody. It holds the pages of the sessions, so it is as private as the store.
--tables also writes each table as CSV and LaTeX and each plot as PNG and SVG.
"""

import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import tyro

from benchmarks.report.comparisons import differences, headline
from benchmarks.report.evidence import Evidence, checked
from benchmarks.report.judged_steps import JudgedStep, judge
from benchmarks.report.leaderboard_run import is_leaderboard, read_leaderboard
from benchmarks.report.session_data import SessionData, session_data
from benchmarks.report.training_run import is_training_run, read_training_run
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig, ShopR1Error
from replay_sessions.plugins import load_with_extra
from replay_sessions.progress_bar import progress_bar
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file

__all__ = ["main", "read_evidence"]

PROGRAM = "python -m benchmarks.report"
MEGABYTE = 1_000_000
FOR_FIGURES = 1_500_000  # characters that the file needs beside its sessions, with room to spare


class ReportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to report on.

    Attributes:
        folder: The --out of a training run or of a leaderboard.
        out: The file to write; None: report.html in that folder.
        store: The store that was evaluated on, if it lies elsewhere now; None: where the run found it.
        max_megabytes: The largest file to make; sessions that do not fit are left out, and it says how many.
        tables: Also write every table (CSV, LaTeX) and plot (PNG, SVG) into this folder.
        open: Show the file in the browser.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN|BOARD")]]
    out: Path | None = None
    store: str | None = None
    max_megabytes: float = 20.0
    tables: Path | None = None
    open: bool = False

    def __post_init__(self) -> None:
        if self.max_megabytes * MEGABYTE <= FOR_FIGURES:
            raise BadConfig(
                f"--max-megabytes is {self.max_megabytes:g}; the figures alone may need {FOR_FIGURES / MEGABYTE:g}"
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _report(parse_options(ReportOptions, words, program=PROGRAM, text=__doc__)))


def _report(options: ReportOptions) -> None:
    render_page = load_with_extra("benchmarks.report.page:render_page", "report")
    evidence = read_evidence(options.folder)
    judged = {}
    with progress_bar("agents", len(evidence.labels)) as advance:
        for label in evidence.labels:
            judged[label] = judge(evidence, label)
            advance(1)
    found = differences(evidence)
    data, no_sessions = _sessions(options, evidence, judged)
    page: str = render_page(evidence, found, judged, headline(evidence, found, judged), data, no_sessions)
    out = options.out or options.folder / "report.html"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(out, page)
    except OSError as error:
        raise BadConfig(f"--out {out} cannot be written: {error.strerror}") from error
    if options.tables is not None:
        write_tables = load_with_extra("benchmarks.report.table_files:write_tables", "report")
        for path in write_tables(evidence, found, judged, options.tables):
            print(path)
    if no_sessions:
        print(f"without sessions: {no_sessions}", file=sys.stderr)
    elif data is not None and data.left_out:
        print(f"{data.left_out} sessions did not fit into {options.max_megabytes:g} MB", file=sys.stderr)
    print(out)
    if options.open:
        webbrowser.open(out.resolve().as_uri())


def read_evidence(folder: Path) -> Evidence:
    """What a run's folder holds, its figures counted anew.

    Raises:
        BadConfig: It is the folder of neither a finished training run nor a leaderboard.
    """
    if not folder.is_dir():
        raise BadConfig(f"there is no folder '{folder}': give the --out of a training run or of a leaderboard")
    if is_leaderboard(folder):
        return checked(read_leaderboard(folder))
    if is_training_run(folder):
        return checked(read_training_run(folder))
    raise BadConfig(
        f"'{folder}' holds neither a training run (run.json) nor a leaderboard (results.json and agents/): give the "
        "--out of one"
    )


def _sessions(
    options: ReportOptions, evidence: Evidence, judged: dict[str, list[JudgedStep]]
) -> tuple[SessionData | None, str]:
    """What the viewer shows, or why it shows nothing: figures stand without the store, pages do not."""
    room = int(options.max_megabytes * MEGABYTE) - FOR_FIGURES
    try:
        store = SessionStore.open(options.store or evidence.store)
        return session_data(evidence, judged, store, max_characters=room), ""
    except ShopR1Error as error:
        if options.store is not None:
            raise
        return None, f"{error}. Give the store by --store PATH."


if __name__ == "__main__":
    sys.exit(main())
