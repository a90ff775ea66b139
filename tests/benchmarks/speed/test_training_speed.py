"""The speed of training and sampling is measured as the modules say; figures are written as they come."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from benchmarks.speed import rollouts, training_gpu
from benchmarks.speed.__main__ import main
from benchmarks.speed.measurement import Measurement
from benchmarks.speed.passes import Size, build_session, build_ways


def written(file: Path) -> list[Measurement]:
    return msgspec.json.decode(file.read_bytes(), type=list[Measurement])


def measured(folder: Path, *words: str) -> dict[str, float]:
    assert main([*words, "--json", str(folder / "speed.json")]) == 0
    return {each.name: each.value for each in written(folder / "speed.json")}


def test_all_ways_give_one_sum_and_leave_gradients():
    tree = build_session(Size(20, steps=2, replies=2, reply=5), 100)
    sums = {name: way(tree) for name, way in build_ways("tiny").items()}
    assert set(sums) == {"ours", "prefix", "rows"}
    for found in sums.values():
        assert found == pytest.approx(sums["rows"], rel=1e-5)


def test_figures_of_a_gpu_are_measured_on_any_device_with_a_tiny_shape(tmp_path):
    found = measured(tmp_path, "training_gpu", "--quick")
    for way in ("auto", "flash", "rows"):
        tokens, rows = (found[f"training_gpu.tiny.quick.{way}.{figure}"] for figure in ("tokens", "rows"))
        assert rows > tokens if way != "rows" else rows == pytest.approx(tokens)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_figures_of_a_gpu_are_not_measured_without_one(capsys):
    assert main(["training_gpu"]) == 2
    assert "training_gpu needs a CUDA device, and torch finds none here" in capsys.readouterr().err


@pytest.mark.long
def test_rollouts_are_measured_beside_generate(tmp_path):
    assert main(f"rollouts --quick --json {tmp_path}/speed.json".split()) == 0
    groups, singles = written(tmp_path / "speed.json")
    assert (groups.name, singles.name) == ("rollouts.tiny.groups.generate", "rollouts.tiny.singles.generate")
    assert groups.ratio == pytest.approx(groups.value / (groups.peer_value or 0))


@pytest.mark.long
def test_sampling_on_a_gpu_is_measured_on_any_device_with_a_tiny_shape(tmp_path):
    found = measured(tmp_path, "rollouts_gpu", "--quick")
    for case in ("session", "prompts"):
        for head in ("float32", "tf32"):
            assert found[f"rollouts_gpu.tiny.{case}.{head}.decoding"] > 0
            assert 0 < found[f"rollouts_gpu.tiny.{case}.{head}.gap"] < 0.02


def test_replies_that_differ_from_those_of_generate_are_no_measurement(monkeypatch):
    monkeypatch.setattr(
        rollouts, "_generate_plain", lambda model, prompts, config: [[[0]] * config.num_generations for _ in prompts]
    )
    with pytest.raises(RuntimeError, match="100% of the replies differ at tiny"):
        main(["rollouts", "--quick"])


def test_a_shape_that_is_none_is_told(capsys):
    assert main(["training", "--quick", "--shapes", "31b"]) == 2
    assert "31b" in capsys.readouterr().err


def test_a_part_that_fails_leaves_the_figures_before_it(tmp_path, monkeypatch):
    def broken(*_: Any) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(training_gpu, "_measure_way", broken)
    with pytest.raises(RuntimeError, match="no more"):
        main(f"rollouts training_gpu --quick --json {tmp_path}/speed.json".split())
    assert written(tmp_path / "speed.json")[0].name == "rollouts.tiny.groups.generate"


def test_the_parts_of_a_grpo_step_add_up(tmp_path):
    found = measured(tmp_path, "grpo_step", "--quick", "--runs", "2")
    names = ("sampling", "reference", "learning", "optimizer", "host")
    parts = [found[f"grpo_step.tiny.demo.{name}"] for name in names]
    assert all(0 < part < 100 for part in parts) and sum(parts) == pytest.approx(100)
    assert found["grpo_step.tiny.demo.total"] > 0
