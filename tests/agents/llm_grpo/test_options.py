"""What the words of the training command make of a preset."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from agents.llm_grpo.options import prepare
from agents.llm_grpo.presets import RENAMED_KEYS, load_preset
from replay_sessions.foundation.errors import BadConfig
from train import config as config_module
from train.config import ModelConfig
from train.grpo.config import GrpoConfig
from train.machine import Precision


@pytest.mark.parametrize("usual", ["float32", "bfloat16_autocast"])
def test_auto_precision_is_definite_in_the_configuration_of_a_run(
    usual: Precision, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run that goes on elsewhere keeps what it began in, so what it notes is never `auto`."""
    monkeypatch.setattr(config_module, "default_precision", lambda: usual)
    call = ["--preset", "smollm2_cpu", "--out", str(tmp_path)]
    assert prepare(call)[2].model.precision == usual
    assert prepare([*call, "--model.precision", "float32"])[2].model.precision == "float32"
    assert prepare([*call, "--model.precision", "bfloat16_autocast"])[2].model.precision == "bfloat16_autocast"


def test_a_key_under_its_former_name_is_answered_with_the_new_name(tmp_path: Path) -> None:
    preset = tmp_path / "old.toml"
    preset.write_text("[grpo]\nclip = 0.3\n")
    with pytest.raises(BadConfig, match=re.escape(f"preset '{preset}': 'grpo.clip' is now 'grpo.epsilon'.")):
        prepare(["--preset", str(preset)])
    preset.write_text("[model]\nstretch_tokens = 8\n")
    with pytest.raises(BadConfig, match=re.escape("'model.stretch_tokens' is now 'model.chunk_tokens'.")):
        prepare(["--preset", str(preset)])
    with pytest.raises(BadConfig, match=r"--grpo\.loss-mean is now --grpo\.loss-type\."):
        prepare(["--grpo.loss-mean", "token"])


def test_a_run_with_a_former_key_is_answered_with_the_new_name(tmp_path: Path) -> None:
    config = msgspec.to_builtins(load_preset("tiny_cpu"))
    config["phases"]["shop_r1"]["grpo"] = config["grpo"] | {"advantage_scale": "none"}
    (tmp_path / "run.json").write_text(json.dumps({"config": config}))
    with pytest.raises(BadConfig, match=r"phases\[\.\.\.\]\.grpo\.advantage_scale' is now 'phases.*scale_rewards'"):
        prepare(["--resume", str(tmp_path)])


def test_every_renamed_key_is_a_key_now_and_was_none() -> None:
    keys = {"grpo": GrpoConfig.__struct_fields__, "model": ModelConfig.__struct_fields__}
    for former, name in RENAMED_KEYS.items():
        table, key = former.split(".")
        assert name in keys[table] and key not in keys[table]


def test_a_run_that_failed_before_its_first_step_does_not_hold_its_folder(tmp_path: Path) -> None:
    for name, text in (("run.json", "{}"), ("metrics.jsonl", ""), (".training.lock", "")):
        (tmp_path / name).write_text(text)
    call = ["--preset", "trial", "--out", str(tmp_path)]
    assert prepare(call)[1] == tmp_path
    (tmp_path / "metrics.jsonl").write_text('{"phase": "sft", "step": 1}\n')
    with pytest.raises(BadConfig, match="already holds a run"):
        prepare(call)


def test_a_prompt_file_that_is_missing_is_an_error_before_the_store_is_read() -> None:
    with pytest.raises(BadConfig, match=r"prompt\.system_file 'no/such\.txt' cannot be read"):
        prepare(["--prompt.system-file", "no/such.txt", "--store", "no/such/store"])
