"""Options of the training command change a preset as they say."""

import msgspec
import pytest

from agents.llm_grpo.options import prepare, prepare_from
from agents.llm_grpo.train import train
from replay_sessions.foundation.errors import BadConfig
from shop_env.reward import reward_preset
from train import config as config_module


@pytest.mark.parametrize("usual", ["float32", "bfloat16_autocast"])
def test_auto_precision_is_definite_in_the_configuration_of_a_run(usual, monkeypatch, tmp_path):
    """A run that goes on elsewhere keeps what it began in, so what it notes is never `auto`."""
    monkeypatch.setattr(config_module, "default_precision", lambda: usual)
    call = ["--preset", "smollm2_cpu", "--out", str(tmp_path)]
    assert prepare(call)[2].model.precision == usual
    assert prepare([*call, "--model.precision", "float32"])[2].model.precision == "float32"
    assert prepare([*call, "--model.precision", "bfloat16_autocast"])[2].model.precision == "bfloat16_autocast"


def test_flags_reach_every_phase_that_does_not_differ_in_them(tmp_path):
    call = f"--preset tiny_cpu --rows calibration --out {tmp_path}".split()
    phases = prepare([*call, "--grpo.steps", "5", "--context.persona", "none"])[2].phases
    assert [phase.grpo and (phase.grpo.steps, phase.grpo.scale_rewards) for phase in phases.values()] == [
        None,
        (5, "group"),
        (5, "none"),
        (5, "none"),
    ]
    assert {phase.context.persona for phase in phases.values()} == {"none"}
    own = prepare([*call, "--phases.undivided.grpo.steps", "7"])[2].phases
    assert [phase.grpo and phase.grpo.steps for phase in own.values()] == [None, 70, 7, 70]


def test_numbers_of_a_reward_are_flags_and_a_reward_without_them_keeps_its_name(tmp_path):
    call = ["--preset", "tiny_cpu", "--out", str(tmp_path)]
    assert prepare([*call, "--reward", "binary"])[2].reward == "binary"
    changed = prepare([*call, "--reward.format", "2.0"])[2]
    assert changed.reward_config == msgspec.structs.replace(reward_preset("shop_r1"), format=2.0)
    assert changed.phases["shop_r1"].get_reward(changed.reward_config).format == 2.0


def test_a_run_that_failed_before_its_first_step_does_not_hold_its_folder_a_leaderboard_does(tmp_path):
    for name, text in (("run.json", "{}"), ("metrics.jsonl", ""), (".training.lock", "")):
        (tmp_path / name).write_text(text)
    call = ["--preset", "trial", "--out", str(tmp_path)]
    assert prepare(call)[1] == tmp_path
    (tmp_path / "metrics.jsonl").write_text('{"phase": "sft", "step": 1}\n')
    with pytest.raises(BadConfig, match="already holds a run"):
        prepare(call)
    (tmp_path / "run.json").rename(tmp_path / "results.json")
    with pytest.raises(BadConfig, match="or leaderboard"):
        prepare(call)


def test_a_call_from_python_never_passes_over_an_option():
    with pytest.raises(BadConfig, match="leave out all other flags"):
        prepare_from({"resume": "runs/mine", "seed": 3})
    with pytest.raises(BadConfig, match="show_prompt trains nothing"):
        train(show_prompt=True, store="no/such/store")


def test_a_missing_prompt_file_and_numbers_below_0_are_errors_before_the_store_is_read():
    for flag, value, said in (
        ("--prompt.system-file", "no/such.txt", r"prompt\.system_file 'no/such\.txt' cannot be read"),
        ("--seed", "-1", "--seed is -1"),
        ("--threads", "-1", "--threads is -1"),
    ):
        with pytest.raises(BadConfig, match=said):
            prepare([flag, value, "--store", "no/such/store"])
