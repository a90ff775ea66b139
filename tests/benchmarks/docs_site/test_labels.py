"""One label is one method, in presets, tables, studies and records, and so in README and docs, which show these."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from agents.llm_grpo.presets import load_preset, preset_names, rows_names
from benchmarks.docs_site.tables import RESULTS
from benchmarks.sweep.file import PAPERS, Sweep, load_sweep
from replay_sessions.foundation.config_errors import toml_names
from tests.json_files import read_json

STUDIES = Path(str(PAPERS)).with_name("studies")
Config = dict[str, Any]  # as run.json has it


def method_of(config: Config, phase: str) -> Any:
    """Returns what a phase's weights were trained for and shown, and the same of the weights that it starts from."""
    if phase == "model":
        return None
    table = config["phases"][phase]
    reward = (table["reward"] or config["reward"]) if table["method"] == "grpo" else None
    context = {  # None in old records: that of the run
        key: config["context"][key] if table["context"][key] is None else table["context"][key]
        for key in ("scope", "rationales")
    }
    return table["method"], reward, context, table["teach_rationales"], method_of(config, table["start"])


def own_labels(config: Config) -> dict[str, str]:
    return {phase["label"]: name for name, phase in config["phases"].items()}


def row_labels(sweep: Sweep, run_name: str) -> dict[str, str]:
    (run,) = [run for run in sweep.run if run.name == run_name]
    return {row.label: row.phase for row in sweep.rows_of(run) if not row.kind}


def configs() -> Iterator[tuple[str, Config, dict[str, str]]]:
    """Yields every source of rows: its name, its configuration, and the phase of each label."""
    rows = [*rows_names(), *map(str, sorted(STUDIES.glob("*_rows.toml")))]
    for name, preset, file in (*((name, name, None) for name in preset_names()), *((f, "tiny_cpu", f) for f in rows)):
        config = msgspec.to_builtins(load_preset(preset, file))
        yield name, config, own_labels(config)
    for name in toml_names(PAPERS):
        sweep = load_sweep(name)
        presets = {run.name: load_preset("tiny_cpu", run.rows_file) for run in sweep.run}
        for run_name, preset in presets.items():
            yield name, msgspec.to_builtins(preset), row_labels(sweep, run_name)
        record = RESULTS / f"paper/{name}.json"  # shop_r1_opera has none, because OPeRA cannot be fetched here
        for key, recorded in (read_json(record)["runs"] if record.exists() else {}).items():
            run_name, config = key.split("/")[0], recorded["config"]
            labels = row_labels(sweep, run_name)
            recorded_labels = {label: phase for label, phase in labels.items() if phase in config["phases"]}
            assert all(presets[run_name].is_untaught(labels[label]) for label in labels.keys() - recorded_labels.keys())
            yield f"paper/{name}.json", config, recorded_labels
    for record in sorted(set(RESULTS.rglob("*.json")) - set(RESULTS.glob("paper/*"))):
        content = read_json(record)
        runs = content.get("runs") or {"": content.get("provenance", {})} if isinstance(content, dict) else {}
        for run in runs.values():
            if isinstance(run.get("config", {}).get("phases"), dict):
                yield record.name, run["config"], own_labels(run["config"])


def test_rows_of_one_label_come_from_one_method():
    methods: dict[str, tuple[str, Any]] = {}
    for source, config, labels in configs():
        for label, phase in labels.items():
            method = method_of(config, phase)
            first, of_first = methods.setdefault(label, (source, method))
            assert method == of_first, f"'{label}' of {source} is another method than in {first}"
    assert {"Shop-R1", "SFT", "Shop-R1, SFT without past rationales"} < methods.keys()


def test_rl_of_shop_r1_sees_no_past_rationales_and_its_sft_does():
    shown = {}
    for _, config, labels in configs():
        for label, phase in labels.items():
            start = config["phases"][phase]["start"]
            if label.startswith("Shop-R1"):
                shown[label] = tuple(method_of(config, each)[2]["rationales"] for each in (phase, start))
    assert shown == {
        "Shop-R1": (False, True),
        "Shop-R1, latest step": (False, True),
        "Shop-R1, SFT without past rationales": (False, False),
    }
