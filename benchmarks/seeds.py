"""The same training run on several seeds, each with shoppers of its own, and one table of what all of them say.

    python -m benchmarks.seeds --seeds 101,102,103 --out runs/seeds             demo shops made with these seeds
    python -m benchmarks.seeds --seeds 1,2,3 --store stores/mine --out runs/m   one store, three training seeds

Each seed is `python -m agents.llm_grpo.train` in a process of its own, with its wall time and peak memory noted. A seed
that is finished in OUT is not run again; one that was stopped goes on. OUT/seeds.json and seeds.md hold the summary.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.demo_shop.cached_store import DEMO_SESSIONS
from replay_sessions.errors import BadConfig, ShopR1Error, run_command
from replay_sessions.store import StoreWriter

__all__ = ["main", "summary"]

SHOWN = ("exact_accuracy", "type_accuracy", "type_f1_macro", "mean_reward")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.seeds", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", required=True, metavar="S,S,S", help="at least one whole number")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="one folder a seed, and the summary")
    parser.add_argument("--preset", default="tiny_cpu", metavar="NAME|FILE", help="as in training (tiny_cpu)")
    parser.add_argument("--store", metavar="STORE", help="one store for all seeds; without it a demo shop for each")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as in training")
    try:
        parsed = parser.parse_args(arguments)
    except SystemExit as done:
        return int(done.code or 0)
    return run_command(lambda: _run(parsed))


def _run(parsed: argparse.Namespace) -> int:
    try:
        seeds = [int(seed) for seed in parsed.seeds.split(",")]
    except ValueError as error:
        raise BadConfig(f"--seeds {parsed.seeds}: expected whole numbers with commas, such as 101,102,103.") from error
    runs = {seed: _finished_run(seed, parsed) for seed in seeds}
    record, text = summary(runs)
    for name, content in (("seeds.json", json.dumps(record, indent=2) + "\n"), ("seeds.md", text)):
        (parsed.out / name).write_text(content, encoding="utf-8")
    print(text)
    return 0


def _finished_run(seed: int, parsed: argparse.Namespace) -> dict[str, Any]:
    """The results.json of one seed's run, made now where it is not there yet."""
    folder = parsed.out / f"seed{seed}"
    results = folder / "results.json"
    if not results.exists():
        started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        if (folder / "run.json").exists():
            words = ["--resume", str(folder)]
        else:
            store = parsed.store or str(_demo_store(parsed.out / f"store{seed}", seed))
            words = ["--preset", parsed.preset, "--store", store, "--seed", str(seed), "--out", str(folder)]
            words += [word for override in parsed.set for word in ("--set", override)]
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
