"""The same training run on several seeds, each with shoppers of its own, and one table of what all of them say.

  python -m benchmarks.seeds --seeds 101 102 103 --out runs/seeds
  python -m benchmarks.seeds --seeds 1 2 3 --store stores/mine --out runs/m
  python -m benchmarks.seeds --seeds 1 2 --out runs/s -- --grpo.steps 100

Without --store each seed makes a demo shop of its own. What follows `--` goes to `python -m agents.llm_grpo.train`, of
which each seed is a process, with its wall time and peak memory noted. A seed that the same call has finished in OUT is
not run again, and one that was stopped goes on. OUT/seeds.json and seeds.md hold the summary.
"""

import hashlib
import json
import statistics
import sys
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tyro

from benchmarks.training_processes import demo_store_of_seed, run_measured, whole_numbers
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig, ShopR1Error
from replay_sessions.store import SessionStore
from shop_env.metrics.statistics import ClusteredError, pooled_over_seeds

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

    training: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="FLAGS")]] = ()
    seeds: tuple[str, ...]
    out: Path
    preset: str = "tiny_cpu"
    store: str | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(parse_options(Seeds, words, program="python -m benchmarks.seeds", text=__doc__)))


def _run(options: Seeds) -> int:
    runs = {seed: _finished_run(seed, options) for seed in whole_numbers(options.seeds)}
    record, text = summary(runs)
    for name, content in (("seeds.json", json.dumps(record, indent=2) + "\n"), ("seeds.md", text)):
        (options.out / name).write_text(content, encoding="utf-8")
    print(text)
    return 0


def _finished_run(seed: int, options: Seeds) -> dict[str, Any]:
    """The results.json of one seed's run, made now where it is not there yet."""
    folder = options.out / f"seed{seed}"
    store = options.store or str(demo_store_of_seed(options.out / f"store{seed}", seed))
    _check_same_call(folder, _call(seed, store, options))
    if not (folder / "results.json").exists():
        words = ["--preset", options.preset, "--store", store, "--seed", str(seed), "--out", str(folder)]
        words += options.training
        if (folder / "run.json").exists():
            words = ["--resume", str(folder)]
        started = time.monotonic()
        code, peak_bytes = run_measured([sys.executable, "-m", "agents.llm_grpo.train", *words])
        if code:
            raise ShopR1Error(f"the run of seed {seed} ended with exit code {code}; what it said stands above.")
        cost = {"wall_s": round(time.monotonic() - started, 1), "peak_memory_mb": round(peak_bytes / 2**20)}
        (folder / "cost.json").write_text(json.dumps(cost) + "\n", encoding="utf-8")
    record: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    cost_file = folder / "cost.json"
    record["cost"] = json.loads(cost_file.read_text(encoding="utf-8")) if cost_file.exists() else None
    return record


def _call(seed: int, store: str, options: Seeds) -> dict[str, Any]:
    """Everything that decides a seed's run: what was made otherwise is no result of this call."""
    return {
        "seed": seed,
        "store": SessionStore.open(store).fingerprint,
        "preset": options.preset,
        "preset_digest": _preset_digest(options.preset),
        "training": list(options.training),
    }


def _preset_digest(preset: str) -> str | None:
    """Of the file; None where there is none, which the training itself says best."""
    file = Path(preset) if preset.endswith(".toml") else resources.files("train") / "presets" / f"{preset}.toml"
    return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest() if file.is_file() else None


def _check_same_call(folder: Path, call: dict[str, Any]) -> None:
    """Notes the call in a folder that holds no run yet; refuses a run that another call made."""
    noted = folder / "call.json"
    if noted.exists():
        earlier = json.loads(noted.read_text(encoding="utf-8"))
        changed = [name for name in call if earlier.get(name) != call[name]]
        if changed:
            said = "; ".join(f"{name}: {earlier.get(name)}, now {call[name]}" for name in changed)
            raise BadConfig(
                f"'{folder}' holds a run of another call ({said}): give another --out, or the same options."
            )
    elif folder.exists() and any(folder.iterdir()):
        raise BadConfig(f"'{folder}' holds a run of which nobody noted how it was called: give another --out.")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        noted.write_text(json.dumps(call, indent=2) + "\n", encoding="utf-8")


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
    pooled = _pooled(list(compared.values()), runs)
    return {"first": one["first"], "second": one["second"], "metric": one["metric"], "by_seed": by_seed} | pooled


def _pooled(compared: list[dict[str, Any]], runs: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """One difference for all seeds; nothing where there is one seed, or a run that made no test."""
    tests = [one["test"] for one in compared if one.get("test")]
    if len(tests) < 2 or len(tests) < len(compared):
        return {}
    errors = [ClusteredError(test["standard_error"], test["degrees_of_freedom"]) for test in tests]
    stores = {run["provenance"]["store"]["fingerprint"] for run in runs.values()}
    found = pooled_over_seeds([one["difference"] for one in compared], errors, same_users=len(stores) == 1)
    return {"pooled": [found.mean, found.low, found.high]}


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
    lines += ["\nPaired differences in points with 95% intervals over users, seed by seed, and over seeds and users:\n"]
    for entry in differences:
        shown = "; ".join(
            f"{100 * d:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]" for d, low, high in entry["by_seed"].values()
        )
        if "pooled" in entry:
            difference, low, high = (100 * value for value in entry["pooled"])
            shown += f"; over all seeds {difference:+.1f} [{low:+.1f}, {high:+.1f}]"
        lines.append(f"- {entry['first']} − {entry['second']}, {entry['metric']}: {shown}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
