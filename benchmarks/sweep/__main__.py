"""Runs what a file describes, once for each seed, and writes one table of all seeds.

  shop-r1 sweep mine.toml --out runs/mine
  shop-r1 sweep shop_r1_table2 --out runs/paper --dry-run
  shop-r1 sweep shop_r1_table2 --preset shop_r1_3b --gpus-per-run 8 \\
    --store stores/mine --out runs/paper
  shop-r1 sweep shop_r1_table2 --out runs/paper -- --evaluation.sessions 200
  shop-r1 sweep customer_r1_table4 --preset smollm2_cpu --seeds 0 \\
    --store stores/mine --out runs/customer

A file names runs (trainings, or agents to rank), seeds and a store:

  title = "The tiny policy on three shops"
  seeds = [101, 102, 103]
  store = "demo"           # a demo shop for each seed; or a path with {seed}
  compare = [["SFT, T 0.6", "majority"]]
  [[run]]
  preset = "tiny_cpu"
  flags = ["--evaluation.sessions", "600"]
  [[run]]
  name = "agents"
  agents = ["choice", "boosting"]
  flags = ["--sessions", "600"]

Each value is the mean over seeds, with a 95% interval over users and seeds. The
papers' tables are such files too, with the published values beside ours:
shop_r1_table2 to 5, shop_r1_figure2, shop_r1_opera, customer_r1_table4 to 8.
Tables of the same paper share their runs in OUT. Nothing is trained or evaluated
twice, also after a stop. If OUT has a training with another preset, store or
flags, the sweep is refused. Rows of random weights that no SFT taught are left
out: they would be 0 by construction. It writes NAME.json, .md and .csv to OUT.
"""

import sys

from benchmarks.sweep.cost import estimate_cost
from benchmarks.sweep.file import load_sweep
from benchmarks.sweep.result import sweep_result
from benchmarks.sweep.runs import SweepOptions, plan, run_missing, without_untaught_rows
from benchmarks.sweep.written import sections, write
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.table import print_results


def _run(options: SweepOptions) -> None:
    sweep = without_untaught_rows(load_sweep(options.sweep), options)
    planned = plan(sweep, options)
    runs = [run for seed_runs in planned.values() for run in seed_runs]
    if options.dry_run:
        print_results(sweep.title, *(line for run in runs for line in run.describe()), *estimate_cost(planned, options))
        return
    run_missing(runs, options.processes, gpus_per_run=options.gpus_per_run, launch=options.launch)
    result = sweep_result(sweep, planned, options)
    paths = write(result, sweep, options.out)
    for section in sections(result, sweep, full=False):
        print_results(*(section.lstrip("# ").splitlines() if isinstance(section, str) else [section]), "")
    print_results(f"Written: {', '.join(map(str, paths))}")


main = command(SweepOptions, _run, program="shop-r1 sweep")

if __name__ == "__main__":
    sys.exit(main())
