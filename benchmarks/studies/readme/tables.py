"""Each table of the README, as Markdown, from the records in benchmarks/results."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

from replay_sessions.foundation.table import Cell, Column, Estimate, Table, Unit, columns, format_cell

RESULTS = Path(__file__).parents[2] / "results"
MISSING = "–"


def readme_tables(results: Path = RESULTS) -> dict[str, Callable[[], str]]:
    """The functions that write each table, by its name."""
    functions = (headline, demo_shop, demo_shop_differences, live, ab, baselines, speed, training_gpu)
    tables: dict[str, Callable[[], str]] = {function.__name__: partial(function, results) for function in functions}
    for record in (results / "paper").glob("*.json"):
        tables[f"paper_{record.stem}"] = partial(_paper, record)
    for record in (results / "smollm2").glob("*.json"):
        tables[f"language_model_{record.stem}"] = partial(_language_model, record)
    for kind in ("policies", "objectives"):
        for record in (results / "real_shoppers").glob(f"*_{kind}.json"):
            tables[record.stem] = partial(_policies, record)
    return tables


def headline(results: Path) -> str:
    """The demo shop in a few rows: means over the seeds, sampled and greedy side by side."""
    rows = _read(results / "demo_shop/seeds.json")["rows"]

    def mean(label: str) -> float:
        share: float = rows[label]["exact_accuracy"]["mean"]
        return share

    lines: list[list[Cell]] = [[label, mean(label), None] for label in ("majority", "copy_match")]
    lines += [
        [label, mean(f"{label}, T 0.6"), mean(f"{label}, greedy")]
        for label in ("SFT", "SFT, same time", "Shop-R1", "oracle")
    ]
    return _table("exact match, %", {"as it samples, T 0.6": "percent", "greedy": "percent"}, lines)


def demo_shop(results: Path) -> str:
    """The means over the seeds of `benchmarks.seeds`, sampled policies first."""
    rows = _read(results / "demo_shop/seeds.json")["rows"]
    lines: list[list[Cell]] = []
    for label in sorted(rows, key=lambda label: label.endswith("greedy")):
        exact, of_type, f1 = (rows[label][name] for name in ("exact_accuracy", "type_accuracy", "type_f1_macro"))
        by_seed = ", ".join(format_cell(share, "percent") for share in exact["by_seed"])
        lines.append([label, f"{format_cell(exact['mean'], 'percent')} ({by_seed})", of_type["mean"], f1["mean"]])
    units: dict[str, Unit] = {"exact (by seed)": "text", "action type": "percent", "macro-F1": "percent"}
    return _table("agent", units, lines)


def demo_shop_differences(results: Path) -> str:
    """The paired differences over seeds and users, and those of each seed."""
    lines = []
    for row in _read(results / "demo_shop/seeds.json")["differences"]:
        pooled, *by_seed = (
            format_cell(Estimate(*ends), "difference") for ends in (row["pooled"], *row["by_seed"].values())
        )
        metric = {"exact_accuracy": "exact", "type_f1_macro": "macro-F1"}[row["metric"]]
        lines.append(f"- {row['first']} − {row['second']}, {metric}: **{pooled}**; by seed {'; '.join(by_seed)}\n")
    return "".join(lines)


def _language_model(path: Path) -> str:
    """SmolLM2 on logs of people: each policy sampled and greedy, and greedy against SFT and the best baseline."""
    record = _read(path)
    training = record.get("training", record)  # before results.json was an evaluation log, all stood at the top
    entries = [entry["row"] for entry in record["entries"]] if "entries" in record else record["rows"]
    rows = {row["label"]: row["figures"] for row in entries}
    compared = [row for row in training["comparisons"] if row["metric"] == "exact_accuracy"]
    compared += training["over_best_agent"]
    # Records of the first version have the t interval, which decides, in a table of its own.
    differences = {
        (row["first"], row["second"]): _estimate(row.get("test", row) | {"value": row["difference"]})
        for row in compared
    }
    best = training["over_best_agent"][0]["second"]
    lines: list[list[Cell]] = []
    for phase in record["provenance"]["config"]["phases"].values():
        sampled, greedy = (f"{phase['label']}, {decoding}" for decoding in ("T 0.6", "greedy"))
        exact = [_estimate(rows[label]["exact_accuracy"]) for label in (sampled, greedy)]
        over = [differences.get((greedy, other)) for other in ("SFT, greedy", "SFT, same time, greedy", best)]
        lines.append([phase["label"], *exact, _estimate(rows[greedy]["type_accuracy"]), *over])
    shares: dict[str, Unit] = dict.fromkeys(("exact, T 0.6", "exact, greedy", "type, greedy"), "percent")
    gaps: dict[str, Unit] = dict.fromkeys(("greedy − SFT", "greedy − SFT, same time", f"greedy − {best}"), "difference")
    return _table("policy", shares | gaps, lines)


def _policies(path: Path) -> str:
    """Policies, then baselines, the lowest NLL first: it is that of temperature 1, whatever the decoding."""
    decoded, likelihood = _read(path)["tables"]
    figures = {row["label"]: row["figures"] for row in decoded["rows"]}
    decodings = ("T 1", "T 0.6", "greedy", "most probable action")
    lines: list[tuple[bool, float, list[Cell]]] = []
    for row in likelihood["rows"]:
        by_decoding = [figures.get(f"{row['label']} {decoding}") for decoding in decodings]
        is_baseline = not any(by_decoding)
        if is_baseline:  # it has one way to choose its action
            by_decoding[2] = figures[row["label"]]
        exact, f1 = ([each and each[metric] for each in by_decoding] for metric in ("exact_accuracy", "type_f1_macro"))
        shares = [each and each["value"] for each in (*exact[:3], f1[2])]
        nll = row["figures"].get("nll")
        cells = [row["label"], *shares[:3], _estimate(exact[3]), shares[3], _estimate(f1[3]), _estimate(nll)]
        lines.append((is_baseline, nll["value"] if nll else math.inf, cells))
    headings = ("exact: T 1", *decodings[1:], "macro-F1: greedy", "of the most probable")
    units: dict[str, Unit] = dict.fromkeys(headings, "percent")
    return _table("policy", units | {"NLL": "nats"}, [cells for *_, cells in sorted(lines, key=itemgetter(0, 1))])


def _paper(path: Path) -> str:
    """A table of the papers, sampled: our figures with their intervals, the published ones beside."""
    record = _read(path)
    model = record["models"][0]
    lines: list[list[Cell]] = []
    for row in record["views"][0]["rows"]:
        published = row["published"].get(model, [None] * len(row["figures"]))
        pairs = zip(map(_estimate, row["figures"]), published, strict=True)
        lines.append([row["label"], *(cell for pair in pairs for cell in pair)])
    # A heading may come twice: each column of ours has one of the paper beside it.
    headings = [heading for column in record["columns"] for heading in (column, f"paper, {model}")]
    return Table(columns=columns("row", percent=headings), rows=lines).markdown()


def live(results: Path) -> str:
    """Agents left to themselves in the demo shop."""
    labels = {
        "the shoppers": "the shoppers",
        "the shoppers, drawn anew": "the shoppers, drawn anew",
        "sft_T1": "SFT, T 1",
        "sft": "SFT, T 0.6",
        "shop_r1": "Shop-R1, T 0.6",
        "ppo": "MaskablePPO, greedy",
        "copy_match": "copy_match",
    }
    rows = {row["label"]: row["figures"] for row in _read(results / "live/live.json")["rows"]}
    lines: list[list[Cell]] = []
    for name, label in labels.items():
        divergence = rows[name].get("action_mix_divergence")
        bits = "" if divergence is None else format_cell(divergence["value"], "bits")
        lines.append([label, _estimate(rows[name]["length"]), _estimate(rows[name]["purchase_rate"]), bits])
    return _table("agent", {"steps a visit": "points", "bought, %": "percent", "action mix, JSD": "bits"}, lines)


def ab(results: Path) -> str:
    """The true effect of each change of the shop on the purchase rate, in points, and what each agent predicts."""
    record = _read(results / "ab/ab.json")["results"]
    rows = [row for row in record["rows"] if row["label"] != "no effect"]
    lines: list[list[Cell]] = []
    for name, true in record["true"].items():
        predicted = [row["predictions"][name]["bought"] for row in rows]
        marks = ["" if cell["right_direction"] is not False else " ✗" for cell in predicted]
        cells = [_format_effect(cell["effect"]) + mark for cell, mark in zip(predicted, marks, strict=True)]
        lines.append([name, _format_effect(true["bought"]), *cells])
    headings = ("true", *(row["label"] for row in rows))
    return _table("change", dict.fromkeys(headings, "difference"), lines)


def _format_effect(effect: dict[str, float]) -> str:
    return format_cell(_estimate(effect | {"value": effect["difference"]}), "difference")


def baselines(results: Path) -> str:
    """Classic models of the train split on three stores, worst first on the demo shop."""
    stores = {"demo": "demo shop", "miniwob": "MiniWoB", "autowebbench": "AutoWebBench"}
    rows: dict[str, dict[str, Any]] = {}
    for store in stores:
        entries = _read(results / f"baselines/{store}.json")["entries"]
        rows[store] = {entry["row"]["label"]: entry["row"]["figures"] for entry in entries}
    columns = [Column("baseline")]
    for heading in stores.values():
        columns += [Column(heading, "percent"), Column("NLL", "nats")]
    labels = sorted(rows["demo"], key=lambda label: rows["demo"][label]["exact_accuracy"]["value"])
    lines: list[list[Cell]] = [
        [
            label,
            *(
                _estimate(rows[store].get(label, {}).get(name))
                for store in stores
                for name in ("exact_accuracy", "nll")
            ),
        ]
        for label in labels
    ]
    return Table(columns=columns, rows=lines).markdown()


def speed(results: Path) -> str:
    """What is measured, beside its peers in the same run."""
    parts = (_steps_and_replies, _pages, _imports, _collecting, _training)
    lines = [line for part in parts for line in part(results)]
    return Table(columns=[Column("what"), Column("here", "count"), Column("peer")], rows=lines).markdown()


def _steps_and_replies(results: Path) -> Iterable[Sequence[str]]:
    measured = _measured(results, "env_reward")

    def line(what: str, *names: str, peer: str) -> list[str]:
        ratios = "; ".join(f"{measured[name]['ratio']:.1f}" for name in names)
        return [what, "; ".join(_thousands(measured[name]["value"]) for name in names), peer.format(ratios)]

    steps, vectors = ("env.step.small", "env.step.large"), ("env.vector.16.small", "env.vector.16.large")
    slower = "{} times slower"
    package = f"the same env with the package `rouge_score`: {slower}"
    yield line("env steps a second, pages of 1 kB; of 600 kB", *steps, peer=package)
    yield line("the same, short product names", "env.step.short_names", peer=slower)
    what = "16 envs side by side, `with_info=False`, steps a second"
    yield line(what, *vectors, peer=f"with infos: {slower}")
    peer = _thousands(measured["reward.replies"]["peer_value"])
    yield line("replies scored a second", "reward.replies", peer=f"with `rouge_score`: {peer}")


def _pages(results: Path) -> Iterable[Sequence[str]]:
    measured = _measured(results, "simplify")
    compiled, compiled_both = (measured[f"simplify.compiled.amazon.{task}"]["value"] for task in ("walk", "all"))
    walk, soup = (measured["simplify.amazon.walk.beautifulsoup"][name] for name in ("value", "peer_value"))
    both = measured["simplify.amazon.all.beautifulsoup"]["value"]
    pruning = measured["simplify.amazon.walk.browsergym_style"]["peer_value"]
    yield [
        "raw Amazon pages simplified, MB/s, quiet AMD EPYC",
        f"compiled {compiled:.1f}, {compiled_both:.1f} with private data removed; interpreted {walk:.1f}, {both:.1f}",
        f"BeautifulSoup, the same walk: {soup:.1f}; BrowserGym-style pruning: {pruning:.1f} (own reimplementations)",
    ]


def _imports(results: Path) -> Iterable[Sequence[str]]:
    raw, recording, scale = (
        _read(results / f"speed/import_{part}.json") for part in ("raw_pages", "recording", "at_scale")
    )
    yield [
        f"import of {raw['sessions']:,} sessions of 8 raw pages ({raw['raw_page_bytes'] / 1e9:.1f} GB), "
        "simplified and without private data, both cores",
        f"{raw['seconds']:.0f} s, {raw['megabytes_per_s']:.0f} MB/s, {raw['peak_memory_mib']} MiB at most",
        MISSING,
    ]
    few, many = recording["recordings"]
    yield [
        f"import of an rrweb recording of {many['recording_bytes'] / 1e6:.0f} MB on a page of "
        f"{recording['page_bytes'] / 1e6:.1f} MB, quiet AMD EPYC",
        f"with {few['steps']} steps {few['one_process']['megabytes_per_s']:.1f} MB/s, with {many['steps']} "
        f"{many['one_process']['megabytes_per_s']:.1f}, or {many['each_core']['megabytes_per_s']:.1f} by a process on "
        f"each core; {many['each_core']['peak_memory_mib']} MiB at most",
        MISSING,
    ]
    after = "the same store, byte for byte" if scale["stores_are_equal"] else "another store"
    yield [
        f"import of {scale['sessions']:,} sessions ({scale['corpus_bytes'] / 1e9:.1f} GB of JSON lines), both cores",
        f"{scale['seconds']:.0f} s, {scale['peak_memory_mib']} MiB at most",
        f"killed {scale['kills']} times on the way: {after}",
    ]


def _collecting(results: Path) -> Iterable[Sequence[str]]:
    collected = _read(results / "speed/collect.json")
    most, paced = collected["saturated"], collected["paced"]
    pause = collected["provenance"]["config"]["pause_s"]
    yield [
        f"recordings collected from {collected['browsers']} browsers at once, each batch on the disk before it is "
        "acknowledged, quiet AMD EPYC",
        f"{most['megabytes_per_s']:.1f} MB/s, {most['events_per_s']:,} events a second; with a batch every {pause:g} s "
        f"each, {paced['latency_ms']['batches after']['p50']:.0f} ms to an acknowledgement (median)",
        MISSING,
    ]


def _training(results: Path) -> Iterable[Sequence[str]]:
    passes, rollouts = _measured(results, "training"), _measured(results, "rollouts")
    peers = {
        "trl": "as rows through TRL",
        "rows": "transformers' rows",
        "prefix": "sharing per prompt",
        "trie": "one dense mask",
    }
    yield [
        "forward and backward over 56 replies in a session, 31.4 million parameters, both cores of a quiet AMD EPYC",
        f"{passes['training.pass.31m.rows']['value']:.1f} s",
        "; ".join(f"{name}: {passes[f'training.pass.31m.{peer}']['ratio']:.1f}" for peer, name in peers.items())
        + " times as long",
    ]
    groups = rollouts["rollouts.31m.groups.generate"]
    yield [
        "tokens of such replies sampled a second, there",
        f"{groups['value']:.0f}",
        f"`generate` with `num_return_sequences`: {groups['peer_value']:.0f}",
    ]


def training_gpu(results: Path) -> str:
    """Passes over a session's replies on a GPU, by attention."""
    measured = _measured(results, "training_gpu")
    lines: list[list[Cell]] = []
    for shape, size in {"qwen0.5b": "0.5B", "qwen3b": "3B"}.items():
        for length, way in product(("8k", "16k", "32k"), ("structured", "flex", "depth_first", "rows")):
            name = f"training_gpu.{shape}.{length}.{way}"
            if f"{name}.rows" in measured:
                rows, mfu, mib = (measured[f"{name}.{figure}"]["value"] for figure in ("rows", "mfu", "memory"))
                lines.append([f"{size}, {length}", way, round(rows), f"{mfu:.0f}%", f"{mib / 1024:.1f}"])
    units: dict[str, Unit] = {
        "attention": "text", "tokens of rows a second": "count", "MFU": "text", "GiB at most": "text"
    }  # fmt: skip
    return _table("model, tokens of a session", units, lines)


def _measured(results: Path, part: str) -> dict[str, Any]:
    return {row["name"]: row for row in _read(results / f"speed/{part}.json")}


def _table(heading: str, units: Mapping[str, Unit], lines: Sequence[Sequence[Cell]]) -> str:
    """A Markdown table whose first column is text."""
    columns = [Column(heading), *(Column(text, unit) for text, unit in units.items())]
    return Table(columns=columns, rows=lines).markdown()


def _estimate(figure: Mapping[str, float] | None) -> Estimate | None:
    """A figure of a record; without an interval where its ends are equal."""
    if figure is None:
        return None
    ends = (figure["low"], figure["high"]) if figure["low"] != figure["high"] else ()
    return Estimate(figure["value"], *ends)


def _thousands(value: float) -> str:
    return f"{round(value, -3):,.0f}"


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
