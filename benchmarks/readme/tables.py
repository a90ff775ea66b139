"""Each table of the README, as Markdown, from the records in benchmarks/results."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "readme_tables"]

RESULTS = Path(__file__).parents[1] / "results"
MISSING = "–"


def readme_tables(results: Path = RESULTS) -> dict[str, Callable[[], str]]:
    """What makes each table, by its name."""
    made = (headline, demo_shop, demo_shop_differences, live, ab, floors, speed)
    tables: dict[str, Callable[[], str]] = {function.__name__: partial(function, results) for function in made}
    for record in (results / "paper").glob("*.json"):
        tables[f"paper_{record.stem}"] = partial(_paper, record)
    for record in (results / "smollm2").glob("*.json"):
        tables[f"language_model_{record.stem}"] = partial(_language_model, record)
    return tables


def headline(results: Path) -> str:
    """The demo shop in a few rows: means over the seeds, sampled and greedy side by side."""
    rows = _read(results / "demo_shop/seeds.json")["rows"]
    scripted = [[label, _mean(rows[label]), MISSING] for label in ("majority", "copy_match")]
    sampled = [
        [label, *(_mean(rows[f"{label}, {decoding}"]) for decoding in ("T 0.6", "greedy"))]
        for label in ("SFT", "SFT, same time", "Shop-R1", "oracle")
    ]
    return _table(["exact match, %", "as it samples, T 0.6", "greedy"], [*scripted, *sampled])


def _mean(row: Mapping[str, Any]) -> str:
    return _percent(row["exact_accuracy"]["mean"])


def demo_shop(results: Path) -> str:
    """The means over the seeds of `benchmarks.seeds`, sampled policies first."""
    rows = _read(results / "demo_shop/seeds.json")["rows"]
    lines = []
    for label in sorted(rows, key=lambda label: label.endswith("greedy")):
        exact, of_type, f1 = (rows[label][name] for name in ("exact_accuracy", "type_accuracy", "type_f1_macro"))
        by_seed = ", ".join(map(_percent, exact["by_seed"]))
        lines.append([label, f"{_percent(exact['mean'])} ({by_seed})", _percent(of_type["mean"]), _percent(f1["mean"])])
    return _table(["agent", "exact (by seed)", "action type", "macro-F1"], lines)


def demo_shop_differences(results: Path) -> str:
    """The paired differences over seeds and people, and those of each seed."""
    lines = []
    for one in _read(results / "demo_shop/seeds.json")["differences"]:
        pooled, *by_seed = (
            f"{_points(difference)} [{_points(low)}, {_points(high)}]"
            for difference, low, high in (one["pooled"], *one["by_seed"].values())
        )
        metric = {"exact_accuracy": "exact", "type_f1_macro": "macro-F1"}[one["metric"]]
        lines.append(f"- {one['first']} − {one['second']}, {metric}: **{pooled}**; by seed {'; '.join(by_seed)}\n")
    return "".join(lines)


def _language_model(path: Path) -> str:
    """SmolLM2 on logs of people: each policy sampled and greedy, and greedy against SFT and the best floor."""
    record = _read(path)
    rows = {row["label"]: row["figures"] for row in record["rows"]}
    compared = [one for one in record["comparisons"] if one["metric"] == "exact_accuracy"] + record["over_best_agent"]
    over = {(one["first"], one["second"]): one for one in compared}
    best = record["over_best_agent"][0]["second"]
    lines = []
    for phase in record["provenance"]["config"]["phases"].values():
        sampled, greedy = (f"{phase['label']}, {decoding}" for decoding in ("T 0.6", "greedy"))
        exact = [_figure(rows[label]["exact_accuracy"], "{:.1f}", 100) for label in (sampled, greedy)]
        of_type = _figure(rows[greedy]["type_accuracy"], "{:.1f}", 100)
        differences = [over.get((greedy, other)) for other in ("SFT, greedy", "SFT, same time, greedy", best)]
        lines.append([phase["label"], *exact, of_type, *(MISSING if one is None else _t(one) for one in differences)])
    headings = ["policy", "exact, T 0.6", "exact, greedy", "type, greedy"]
    return _table([*headings, "greedy − SFT", "greedy − SFT, same time", f"greedy − {best}"], lines)


def _t(comparison: Mapping[str, Any]) -> str:
    """A paired difference in points with the interval that decides, the t interval over users."""
    middle, test = comparison["difference"], comparison["test"]
    return f"{_points(middle)} [{_points(test['low'])}, {_points(test['high'])}]"


def _paper(path: Path) -> str:
    """A table of the papers, sampled: our figures with their intervals, the published ones beside."""
    record = _read(path)
    model = record["models"][0]
    lines = []
    for row in record["views"][0]["rows"]:
        published = row["published"].get(model, [None] * len(row["figures"]))
        pairs = zip(row["figures"], published, strict=True)
        cells = [
            cell
            for here, paper in pairs
            for cell in (_figure(here, "{:.1f}", 100), MISSING if paper is None else _percent(paper))
        ]
        lines.append([row["label"], *cells])
    headings = [heading for column in record["columns"] for heading in (column, f"paper, {model}")]
    return _table(["row", *headings], lines)


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
    lines = []
    for name, label in labels.items():
        divergence = rows[name].get("action_mix_divergence")
        shown = "" if divergence is None else f"{divergence['value']:.3f}"
        length, bought = rows[name]["length"], rows[name]["purchase_rate"]
        lines.append([label, _figure(length, "{:.1f}", 1), _figure(bought, "{:.1f}", 100), shown])
    return _table(["agent", "steps a visit", "bought, %", "action mix, JSD"], lines)


def ab(results: Path) -> str:
    """The true effect of each change of the shop on the purchase rate, in points, and what each agent predicts."""
    record = _read(results / "ab/ab.json")["results"]
    rows = [row for row in record["rows"] if row["label"] != "no effect"]
    lines = []
    for name, true in record["true"].items():
        predicted = [row["predictions"][name]["bought"] for row in rows]
        wrong = ["" if one["right_direction"] is not False else " ✗" for one in predicted]
        cells = [_effect(one["effect"]) + mark for one, mark in zip(predicted, wrong, strict=True)]
        lines.append([name, _effect(true["bought"]), *cells])
    return _table(["change", "true", *(row["label"] for row in rows)], lines)


def _effect(effect: Mapping[str, float]) -> str:
    middle, low, high = (_points(effect[name]) for name in ("difference", "low", "high"))
    return middle if low == high else f"{middle} [{low}, {high}]"


def floors(results: Path) -> str:
    """Classic models of the train split on three stores, worst first on the demo shop."""
    stores = {"demo": "demo shop", "miniwob": "MiniWoB", "autowebbench": "AutoWebBench"}
    rows: dict[str, dict[str, Any]] = {
        store: {entry["row"]["label"]: entry["row"]["figures"] for entry in record["entries"]}
        for store in stores
        for record in [_read(results / f"floors/{store}.json")]
    }
    headings = ["floor", *(heading for named in stores.values() for heading in (named, "NLL"))]
    labels = sorted(rows["demo"], key=lambda label: rows["demo"][label]["exact_accuracy"]["value"])
    lines = []
    for label in labels:
        of_stores = [rows[store].get(label, {}) for store in stores]
        cells = [
            _figure(figures.get(name), form, scale)
            for figures in of_stores
            for name, form, scale in (("exact_accuracy", "{:.1f}", 100), ("nll", "{:.2f}", 1))
        ]
        lines.append([label, *cells])
    return _table(headings, lines)


def speed(results: Path) -> str:
    """What is measured, beside its peers in the same run."""
    lines = [
        *_steps_and_replies(results),
        *_pages(results),
        *_imports(results),
        _collecting(results),
        *_training(results),
    ]
    return _table(["what", "here", "peer"], lines, numbers=1)


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


def _collecting(results: Path) -> Sequence[str]:
    found = _read(results / "speed/collect.json")
    most, paced = found["saturated"], found["paced"]
    pause = found["provenance"]["config"]["pause_s"]
    return [
        f"recordings collected from {found['browsers']} browsers at once, each batch on the disk before it is "
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


def _measured(results: Path, part: str) -> dict[str, Any]:
    return {one["name"]: one for one in _read(results / f"speed/{part}.json")}


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]], numbers: int | None = None) -> str:
    """A Markdown table whose first column is text; `numbers`: how many after it are numbers, all of them if None."""
    count = len(headings) - 1 if numbers is None else numbers
    rule = "|---|" + "--:|" * count + "---|" * (len(headings) - 1 - count)
    return (
        "\n".join(["| " + " | ".join(headings) + " |", rule, *("| " + " | ".join(line) + " |" for line in lines)])
        + "\n"
    )


def _figure(figure: Mapping[str, float] | None, form: str, scale: float) -> str:
    if figure is None:
        return MISSING
    value, low, high = (None if figure[name] is None else scale * figure[name] for name in ("value", "low", "high"))
    shown = form.format(value)
    return shown if low is None or low == high else f"{shown} [{form.format(low)}, {form.format(high)}]"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")


def _thousands(value: float) -> str:
    return f"{round(value, -3):,.0f}"


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
