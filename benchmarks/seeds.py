"""The same training run on several seeds, each with shoppers of its own, and one table over all seeds.

  python -m benchmarks.seeds --seeds 101 102 103 --out runs/seeds
  python -m benchmarks.seeds --seeds 1 2 3 --store stores/mine --out runs/m
  python -m benchmarks.seeds --seeds 1 2 --out runs/s -- --grpo.steps 100

Without --store each seed makes a demo shop of its own. What follows `--` goes to `python -m agents.llm_grpo.train`, of
which each seed is a process, with its wall time and peak memory recorded. A seed that is finished in OUT is not run
again, one that was stopped goes on, and one of other options is refused. OUT/seeds.json and seeds.md hold the summary.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.training_runs import TrainingOptions, find_store, parse_seeds, plan_run, train_missing
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.table import Column, Estimate, Table, format_cell, print_results
from shop_env.evaluation.comparing import Comparison, Measured
from shop_env.evaluation.log import read_log, read_records
from shop_env.evaluation.results import COLUMNS, difference_unit
from shop_env.metrics import StepRecord

METRICS = ("exact_accuracy", "type_accuracy", "type_f1_macro", "mean_reward")


class Options(TrainingOptions):
    """Trains on several seeds.

    Attributes:
        seeds: Whole numbers, separated by spaces or commas.
        out: One folder for each seed, and the summary.
        preset: As in training: tiny_cpu or a .toml FILE.
        store: One store for all seeds; None: the preset's, or a demo shop for each.
        processes: So many seeds are trained at a time.
        dry_run: Print what is trained already and what would be, and do nothing.
        training: Flags of agents.llm_grpo.train, after `--`.
    """

    out: Path


def _run(options: Options) -> None:
    runs = [
        plan_run(
            ["--preset", options.preset, *options.training],
            folder=options.out / f"seed{seed}",
            seed=seed,
            store=find_store(options.store, options.preset, options.out, seed),
        )
        for seed in parse_seeds(options.seeds)
    ]
    if options.dry_run:
        print_results(*(line for run in runs for line in run.describe()))
        return
    train_missing(runs, options.processes)
    logs = {run.seed: read_log(run.folder) for run in runs}
    rows, differences, text = summarise_seeds(
        {
            run.seed: {entry.label: read_records(run.folder, logs[run.seed], entry) for entry in logs[run.seed].entries}
            for run in runs
        },
        {seed: log.training.comparisons for seed, log in logs.items() if log.training},
        same_users=len({log.provenance["store"]["fingerprint"] for log in logs.values()}) == 1,
    )
    record = {
        "seeds": list(logs),
        "rows": rows,
        "differences": differences,
        "ceilings": {seed: msgspec.to_builtins(log.ceilings) for seed, log in logs.items()},
        "phases": {seed: log.training and log.training.phases for seed, log in logs.items()},
        "cost": {run.seed: run.read_json("cost.json") for run in runs},
        "provenance": {seed: log.provenance for seed, log in logs.items()},
    }
    write_results(options.out, "seeds", record, text)
    print_results(text)


def summarise_seeds(
    records: Mapping[int, Mapping[str, Sequence[StepRecord]]],
    comparisons: Mapping[int, Sequence[Comparison]],
    *,
    same_users: bool,
) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    """All seeds' rows and paired differences as records, and both as Markdown.

    Args:
        records: For each seed those of every row.
        comparisons: Of each seed's run, the same pairs in the same order.
        same_users: Whether all seeds are evaluated on the same users.
    """
    measured = Measured(list(records.values()), same_users=same_users, preset="shop_r1")
    rows: dict[str, Any] = {}
    cells = []
    for label in next(iter(records.values())):
        figures = {name: figure for name in METRICS if (figure := measured.figure(label, name))}
        rows[label] = {
            name: {"mean": one.value, "low": one.low, "high": one.high, "by_seed": one.by_seed}
            for name, one in figures.items()
        }
        by_seed = ", ".join(format_cell(value, "percent") for value in figures["exact_accuracy"].by_seed)
        cells.append([label, *(figures.get(name) for name in METRICS), by_seed])
    differences = []
    lines = []
    for of_pair in zip(*comparisons.values(), strict=True):
        first, second, metric = of_pair[0].first, of_pair[0].second, of_pair[0].metric
        ends = {seed: [one.difference, one.low, one.high] for seed, one in zip(comparisons, of_pair, strict=True)}
        difference = {"first": first, "second": second, "metric": metric, "by_seed": ends}
        texts = [one.text() for one in of_pair]
        pooled = measured.difference(first, second, metric)
        if len(of_pair) > 1 and pooled and pooled.low is not None:
            difference["pooled"] = [pooled.value, pooled.low, pooled.high]
            texts.append(f"over all seeds {format_cell(Estimate(*difference['pooled']), difference_unit(metric))}")
        differences.append(difference)
        lines.append(f"- {first} − {second}, {metric}: {'; '.join(texts)}")
    table = Table(columns=[Column("agent"), *(COLUMNS[name] for name in METRICS), Column("exact by seed")], rows=cells)
    text = [
        f"Means over seeds {', '.join(map(str, records))} with 95% intervals; percent, reward in points.\n",
        table.markdown(),
        "Paired differences with 95% intervals over users, seed by seed, and over seeds and users:\n",
        *lines,
    ]
    return rows, differences, "\n".join(text) + "\n"


main = command(Options, _run)

if __name__ == "__main__":
    sys.exit(main())
