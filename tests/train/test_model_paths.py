"""A model that is nowhere is refused at once, and without torch."""

import re

import pytest

from agents.llm_grpo.presets import SHAPES, load_preset, preset_names
from replay_sessions.foundation.errors import CheckpointMismatch
from tests.processes import run_python
from train.model_paths import check_model

CALL = "import sys; from benchmarks.console import main; code = main(sys.argv[1:]); print('torch' in sys.modules, code)"


@pytest.mark.parametrize("path", ["no/such", "a b", "no/such/model", "none.gguf", "package:none/x.gguf", "/none"])
def test_a_model_that_is_nowhere_is_refused(path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(CheckpointMismatch):
        check_model(path)


def test_a_folder_is_no_hub_id(tmp_path):
    with pytest.raises(CheckpointMismatch, match="its folder has no"):
        check_model(str(tmp_path))
    (tmp_path / "config.json").touch()
    check_model(str(tmp_path))


def test_a_model_that_verl_left_in_shards_is_refused_with_verl_s_command(tmp_path):
    actor, whole = tmp_path / "actor", tmp_path / "actor" / "huggingface"
    whole.mkdir(parents=True)
    for file in (actor / "model_world_size_2_rank_0.pt", actor / "fsdp_config.json", whole / "config.json"):
        file.touch()
    command = f"python -m verl.model_merger merge --backend fsdp --local_dir {actor} --target_dir {whole}"
    for folder in (actor, whole):
        with pytest.raises(CheckpointMismatch, match=f"{re.escape(command)}$"):
            check_model(str(folder))
    (whole / "model.safetensors").touch()
    check_model(str(whole))
    with pytest.raises(CheckpointMismatch, match=f"the whole model is in '{whole}'"):
        check_model(str(actor))


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        "train --store none",
        "train --preset none",
        "train --model.path none.gguf --out none",
        "train --resume none",
        "rank --agents local?path=none.gguf --out none",
        "rank --agents random --store none --out none",
        "report none",
    ],
)
def test_missing_models_are_refused_before_torch_is_loaded(words, tmp_path):
    ended = run_python("-c", CALL, *words.split(), folder=tmp_path)
    assert ended.stdout.strip() == "False 2" and "none" in ended.stderr


def test_every_preset_of_qwen_has_a_shape_for_plans_without_a_network():
    paths = {path for name in preset_names() if (path := load_preset(name).model.path) is not None}
    assert {path for path in paths if path.startswith("Qwen/")} == SHAPES.keys()
