"""What would this change of my shop's pages do? Agents answer on logged pages.

  python -m benchmarks.ab.pages --store stores/mine --change change.toml \\
    --agents ngram,nearest --out ab/mine --dry-run
  python -m benchmarks.ab.pages --store stores/mine --change change.toml \\
    --agents ngram "SFT=runs/mine-{seed}/sft" --trained-seeds 0 1 2 \\
    --out ab/mine
  python -m benchmarks.ab.pages --store stores/mine --agents nearest \\
    --change my_change.py:cheaper --placebo other_words.toml --out ab/cheaper \\
    --clicks "cart=*add_to_cart*" "banner=hero.*"

For any store, where `benchmarks.ab` knows the demo shop alone. A change is a file
of rules, or a function from the text of a simplified page to that of B:

  # change.toml; what a rule may do instead: replace = { "old" = "new" },
  # set = { title = "…" }, name, drop = true, move_before, move_after,
  # insert_before, insert_after
  [[rule]]
  select = "[name$=add_to_cart]"
  text = "Put it into my basket"

At every logged step whose page it touches, agents are asked on the page as it was
(A) and as changed (B), after the same logged past and with the same seeds. The
answer is what they would do next (purchase, cart, other clicks, search, leave, or
what cannot be done there) and how far B shifts that, with intervals over users;
beside it what blank lines alone do (placebo), and A against A with other seeds. A
change that touches nothing, or too few users to tell anything, is refused.

Leaves pages.json, pages.md, change.diff (what B looks like), shifts.png and
shifts.svg in OUT. Answers are kept there, so the same call goes on after a stop;
`python -m benchmarks.leaderboard take OUT BOARD` brings replies to A that a
leaderboard has asked for. Needs the extra report.
Exit codes: 0 done, 1 an agent gave no answer at all, 2 the call or its input was
wrong.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from rich.box import SIMPLE_HEAD
from rich.table import Table

from agents.results import results_console
from benchmarks.ab.pages.config import PagesConfig
from benchmarks.ab.pages.question import PagesResults, PagesRow, run_pages
from benchmarks.ab.pages.report import HEADINGS, LEGEND, LIMITS, cells, markdown, sentences, shown, title
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.plugins import load_with_extra
from replay_sessions.provenance import provenance
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file
from replay_sessions.store.locks import working_alone_in

__all__ = ["main"]

PROGRAM = "python -m benchmarks.ab.pages"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 an agent gave no answer at all, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(parse_options(PagesConfig, words, program=PROGRAM, text=__doc__)))


def _run(config: PagesConfig) -> int:
    draw = load_with_extra("benchmarks.ab.pages.plot:draw", "report")
    with working_alone_in(config.out):
        results = run_pages(config)
        written = ["change.diff"] if config.dry_run else _write(results, config, draw)
    console = results_console()
    for row in results.rows:
        if row.shifts:
            wide = _table(results, row, gap=1)
            fits = console.measure(wide).maximum <= console.width
            console.print(title(row), highlight=False, markup=False)
            console.print(wide if fits else _table(results, row, gap=0))
            console.print()
    for sentence in (*sentences(results), *([] if config.dry_run else [LEGEND, LIMITS])):
        console.print(sentence, markup=False, highlight=False)
    if config.dry_run:
        console.print("Nobody was asked (--dry-run).", highlight=False)
    console.print(f"written: {config.out / written[0]}, {', '.join(written[1:])}".rstrip(", "), highlight=False)
    return 1 if any(not row.shifts for row in results.rows) else 0


def _write(results: PagesResults, config: PagesConfig, draw: Callable[[PagesResults, Path], None]) -> list[str]:
    store = SessionStore.open(config.store)
    made_with = provenance(msgspec.to_builtins(config, enc_hook=str), store=store, seed=config.seed)
    record = {"results": results, "provenance": made_with}
    replace_file(config.out / "pages.json", msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    replace_file(config.out / "pages.md", markdown(results))
    plots = ["shifts.png", "shifts.svg"]
    if not any(row.shifts for row in results.rows):
        for plot in plots:  # of an earlier call
            (config.out / plot).unlink(missing_ok=True)
        plots = []
    for plot in plots:
        draw(results, config.out / plot)
    return ["pages.json", "pages.md", "change.diff", *plots]


def _table(results: PagesResults, row: PagesRow, gap: int) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, gap, 0, 0), show_edge=False)
    for heading in HEADINGS:
        shown_heading = heading.replace(" from", "\nfrom")
        table.add_column(shown_heading, justify="left" if heading == HEADINGS[0] else "right", no_wrap=True)
    for kind in shown(results, row):
        table.add_row(*(cell.replace(" [", "\n[") for cell in cells(results, row, kind)))
    return table


if __name__ == "__main__":
    sys.exit(main())
