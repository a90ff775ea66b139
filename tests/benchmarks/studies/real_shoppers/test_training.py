"""The study of policies on real shoppers: its files name what exists, and its figure shows the series' differences."""

import json
from pathlib import Path

import pytest

from agents.llm_grpo.presets import load_preset
from agents.registry import parse_spec
from benchmarks.series.config import read_series
from benchmarks.studies.real_shoppers import training
from replay_sessions.foundation.table import Estimate

STUDY = Path(training.__file__).parent
POLICIES = str(STUDY / "policies.toml")
SERIES = sorted(STUDY.glob("*_policies.toml")) + sorted(STUDY.glob("*_objectives.toml"))


@pytest.mark.parametrize("file", SERIES, ids=lambda file: file.stem)
def test_every_compared_row_is_evaluated_and_every_policy_is_trained(file: Path) -> None:
    series = read_series(file)
    specs = [parse_spec(agent) for run in series.runs for agent in run.agents]
    assert {label for pair in series.compare for label in pair} <= {spec.label for spec in specs}
    rows = str(STUDY / "objectives.toml") if file.stem.endswith("_objectives") else None
    phases = set(load_preset(POLICIES, rows).phases)
    if file.stem == "clothing_objectives":  # its log has no rationales
        phases.remove("likelihood")
    assert {spec.target.rsplit("/", 1)[1] for spec in specs if "{seed}" in spec.target} == phases


def difference(first: str, second: str, metric: str, *ends: float | None) -> dict[str, object]:
    return {"first": first, "second": second, "metric": metric} | dict(
        zip(("difference", "low", "high"), ends, strict=True)
    )


def test_the_figure_has_a_series_for_each_decoding_in_points(tmp_path: Path) -> None:
    rows = [
        difference("SFT most probable action", "SFT greedy", "exact_accuracy", 0.017, 0.01, 0.024),
        difference("GRPO greedy", "SFT greedy", "exact_accuracy", 0.009, None, None),
        difference("GRPO greedy", "SFT greedy", "type_f1_macro", 0.5, 0.4, 0.6),
        difference("SFT most probable action", "boosting", "exact_accuracy", 0.5, 0.4, 0.6),
    ]
    record = {"tables": [{"differences": rows}]}
    series = {each.label: each.estimates for each in training.differences(record)}
    assert series == {
        "greedy": {"GRPO": Estimate(pytest.approx(0.9), None, None)},
        "most probable action": {"SFT": Estimate(*(pytest.approx(value) for value in (1.7, 1.0, 2.4)))},
    }

    folder = tmp_path / "clothing_policies"
    folder.mkdir()
    (folder / "series.json").write_text(json.dumps(record))
    (folder / "series.md").write_text("| agent |\n")
    assert training.main([str(folder), "--out", str(tmp_path / "record")]) == 0
    assert sorted(path.suffix for path in (tmp_path / "record").iterdir()) == [".json", ".md", ".png"]


def test_a_folder_without_a_finished_series_says_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert training.main([str(tmp_path)]) == 2
    assert "run python -m benchmarks.series first" in capsys.readouterr().err
