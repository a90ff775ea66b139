"""The papers' tables, trained here and printed beside the published values.

  python -m benchmarks.paper --table 2
  python -m benchmarks.paper --table 2 --dry-run
  python -m benchmarks.paper --table fig2 --sessions 200 --out runs/paper
  python -m benchmarks.paper --table customer4 --preset smollm2_cpu --seeds 0
  python -m benchmarks.paper --table 4 --store stores/mine -- --grpo.steps 100

Tables: 2, 3, 4, 5 and fig2 of Shop-R1; customer4 to customer8 of Customer-R1.

Each seed trains what the table needs in a process of its own, on a demo shop of
its own where no store is given. Tables of one paper share their runs in OUT:
nothing is trained or evaluated twice, also after a stop, and a run of another
preset, store or flags is refused. What follows `--` goes to
python -m agents.llm_grpo.train. OUT holds table2.json, .md and .csv, and of
fig2 a plot.
"""

import sys

from benchmarks.paper.published import load_table
from benchmarks.paper.result import table_result
from benchmarks.paper.runs import PaperOptions, plan_table
from benchmarks.paper.written import show, write
from benchmarks.training_runs import train_missing
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.table import print_results


def _run(options: PaperOptions) -> None:
    table = load_table(options.table)
    runs = plan_table(table, options)
    flat = [run for of_variant in runs.values() for run in of_variant]
    if options.dry_run:
        print_results(table.title, *(line for run in flat for line in run.describe()))
        return
    if table.drawn_by_temperature:
        with requires_extra("report"):  # reported before hours of work, not after
            import benchmarks.paper.plot  # noqa: F401, PLC0415 - matplotlib may be missing
    train_missing(flat, options.processes, quiet=True)
    result = table_result(table, runs, options)
    paths = write(result, table, options.folder)
    show(result, table)
    print_results(f"Written: {', '.join(map(str, paths))}")


main = command(PaperOptions, _run)

if __name__ == "__main__":
    sys.exit(main())
