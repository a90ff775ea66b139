"""The same training run on several seeds, each with shoppers of its own, and one table of what all of them say.

  python -m benchmarks.seeds --seeds 101 102 103 --out runs/seeds
  python -m benchmarks.seeds --seeds 1 2 3 --store stores/mine --out runs/m
  python -m benchmarks.seeds --seeds 1 2 --out runs/s -- --grpo.steps 100

Without --store each seed makes a demo shop of its own. What follows `--` goes to `python -m agents.llm_grpo.train`, of
which each seed is a process, with its wall time and peak memory noted. A seed that is finished in OUT is not run again;
one that was stopped goes on. OUT/seeds.json and seeds.md hold the summary.
"""

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import tyro

from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.demo_shop.cached_store import DEMO_SESSIONS
from replay_sessions.errors import BadConfig, ShopR1Error
from replay_sessions.store import StoreWriter

__all__ = ["main", "summary"]

SHOWN = ("exact_accuracy", "type_accuracy", "type_f1_macro", "mean_reward")


class Seeds(msgspec.Struct, frozen=True, kw_only=True):
    """Trains on several seeds.

    Attributes:
        seeds: Whole numbers, separated by spaces or commas.
        out: One folder for each seed, and the summary.
        preset: As in training: tiny_cpu or a .toml FILE.
        store: One store for all seeds; None: a demo shop for each.
        training: Flags of agents.llm_grpo.train, after `--`.
    """

    training: tyro.conf.Positional[tuple[str, ...]] = ()
    seeds: tuple[str, ...]
    out: Path
    preset: str = "tiny_cpu"
    store: str | None = None

    def numbers(self) -> list[int]:
        try:
            numbers = [int(seed) for given in self.seeds for seed in given.split(",") if seed]
        except ValueError as error:
            raise BadConfig(f"--seeds {' '.join(self.seeds)}: whole numbers were expected, such as 101,102") from error
        if not numbers:
            raise BadConfig("--seeds names no seed; for example --seeds 101,102,103")
        return numbers


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(parse_options(Seeds, words, program="python -m benchmarks.seeds", text=__doc__)))


def _run(options: Seeds) -> int:
    runs = {seed: _finished_run(seed, options) for seed in options.numbers()}
    record, text = summary(runs)
    for name, content in (("seeds.json", json.dumps(record, indent=2) + "\n"), ("seeds.md", text)):
        (options.out / name).write_text(content, encoding="utf-8")
    print(text)
    return 0


def _finished_run(seed: int, options: Seeds) -> dict[str, Any]:
    """The results.json of one seed's run, made now where it is not there yet."""
    folder = options.out / f"seed{seed}"
    results = folder / "results.json"
    if not results.exists():
        started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        if (folder / "run.json").exists():
            words = ["--resume", str(folder)]
        else:
            store = options.store or str(_demo_store(options.out / f"store{seed}", seed))
            words = ["--preset", options.preset, "--store", store, "--seed", str(seed), "--out", str(folder)]
            words += options.training
        code = subprocess.run([sys.executable, "-m", "agents.llm_grpo.train", *words], check=False).returncode
        if code:
            raise ShopR1Error(f"the run of seed {seed} ended with exit code {code}; what it said stands above.")
        peak_kb = max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
        cost = {"wall_s": round(time.monotonic() - started, 1), "peak_memory_mb": round(peak_kb / 1024)}
        (folder / "cost.json").write_text(json.dumps(cost) + "\n", encoding="utf-8")
    record: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    cost_file = folder / "cost.json"
    record["cost"] = json.loads(cost_file.read_text(encoding="utf-8")) if cost_file.exists() else None
    return record


def _demo_store(path: Path, seed: int) -> Path:
    if not path.exists():
        options = {"sessions": str(DEMO_SESSIONS), "seed": str(seed), "page_size": "small"}
        with StoreWriter(path, source=SOURCE, options=options) as writer:
            for session in generate_sessions(DEMO_SESSIONS, seed):
                writer.write(session)
    return path


def summary(runs: dict[int, dict[str, Any]]) -> tuple[dict[str, Any], str]:
    """All seeds' rows and paired differences as one record, and as Markdown: figures are means over the seeds."""
    first = next(iter(runs.values()))
    rows = {row["label"]: _row_means(row["label"], runs) for row in first["rows"]}
    differences = [_difference(index, runs) for index in range(len(first["comparisons"]))]
    record = {
        "seeds": list(runs),
        "rows": rows,
        "differences": differences,
        "ceilings": {seed: run["ceiling"] for seed, run in runs.items()},
        "phases": {seed: run["phases"] for seed, run in runs.items()},
        "cost": {seed: run["cost"] for seed, run in runs.items()},
        "provenance": {seed: run["provenance"] for seed, run in runs.items()},
    }
    return record, _markdown(list(runs), rows, differences)


def _row_means(label: str, runs: dict[int, dict[str, Any]]) -> dict[str, Any]:
    found = [row for run in runs.values() for row in run["rows"] if row["label"] == label]
    return {
        name: {"mean": statistics.fmean(values), "by_seed": values}
        for name in SHOWN
        if (values := [row["figures"][name]["value"] for row in found])
    }


def _difference(index: int, runs: dict[int, dict[str, Any]]) -> dict[str, Any]:
    compared = {seed: run["comparisons"][index] for seed, run in runs.items()}
    one = next(iter(compared.values()))
    by_seed = {seed: [c["difference"], c["low"], c["high"]] for seed, c in compared.items()}
    return {"first": one["first"], "second": one["second"], "metric": one["metric"], "by_seed": by_seed}


def _markdown(seeds: list[int], rows: dict[str, Any], differences: list[dict[str, Any]]) -> str:
    lines = [f"Means over seeds {', '.join(map(str, seeds))}; percent, reward in points.\n"]
    lines += ["| agent | exact (by seed) | type | macro-F1 | reward |", "|---|--:|--:|--:|--:|"]
    for label, figures in rows.items():
        exact = figures["exact_accuracy"]
        by_seed = ", ".join(f"{100 * value:.1f}" for value in exact["by_seed"])
        lines.append(
            f"| {label} | {100 * exact['mean']:.1f} ({by_seed}) | {100 * figures['type_accuracy']['mean']:.1f} "
            f"| {100 * figures['type_f1_macro']['mean']:.1f} | {figures['mean_reward']['mean']:.1f} |"
        )
    lines += ["\nPaired differences in points with 95% intervals over users, seed by seed:\n"]
    for entry in differences:
        shown = "; ".join(
            f"{100 * d:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]" for d, low, high in entry["by_seed"].values()
        )
        lines.append(f"- {entry['first']} − {entry['second']}, {entry['metric']}: {shown}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
