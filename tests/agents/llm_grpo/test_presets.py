"""A phase may override some of the preset's numbers; the others stay as they are."""

from pathlib import Path

import msgspec
import pytest

from agents.llm_grpo.config import PhaseConfig
from agents.llm_grpo.options import prepare
from agents.llm_grpo.presets import load_preset
from replay_sessions.foundation.errors import BadConfig
from shop_env.reward import RewardConfig

TINY = load_preset("tiny_cpu")


def written(tmp_path: Path, text: str, name: str = "mine.toml") -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def test_a_phase_overrides_single_numbers_of_the_preset(tmp_path):
    config = load_preset(written(tmp_path, 'base = "tiny_cpu"\n[phases.shop_r1.grpo]\nscale_rewards = "none"\n'))
    assert TINY.grpo is not None
    assert config.grpo == TINY.grpo
    assert config.phases["shop_r1"].grpo == msgspec.structs.replace(TINY.grpo, scale_rewards="none")
    assert config.phases["sft"] == TINY.phases["sft"]


def test_tables_within_are_merged_and_lists_replaced(tmp_path):
    config = load_preset(
        written(tmp_path, 'base = "tiny_cpu"\n[phases.sft.sft]\nstages = [{ steps = 3 }]\noptimizer = { lr = 0.5 }\n')
    )
    assert TINY.sft is not None
    sft = config.phases["sft"].sft
    assert [stage.steps for stage in sft.stages] == [3]
    assert sft.optimizer == msgspec.structs.replace(TINY.sft.optimizer, lr=0.5)
    assert (sft.sessions_per_batch, sft.tokens_per_batch) == (TINY.sft.sessions_per_batch, TINY.sft.tokens_per_batch)


def test_rows_override_the_presets_phase_which_overrides_the_preset(tmp_path):
    preset = written(tmp_path, 'base = "tiny_cpu"\n[phases.shop_r1.grpo]\nbeta = 0.5\nepsilon = 0.1\n')
    rows = written(
        tmp_path,
        '[phases.sft]\nlabel = "SFT"\nmethod = "sft"\n'
        '[phases.shop_r1]\nlabel = "R1"\nmethod = "grpo"\nstart = "sft"\ngrpo = { beta = 0.25 }\n',
        "rows.toml",
    )
    grpo = load_preset(preset, rows).phases["shop_r1"].grpo
    assert TINY.grpo is not None
    assert grpo == msgspec.structs.replace(TINY.grpo, beta=0.25, epsilon=0.1)


def test_without_the_presets_numbers_a_phase_has_to_give_all(tmp_path):
    text = '[phases.a]\nlabel = "A"\nmethod = "grpo"\ngrpo = { steps = 3 }\n'
    with pytest.raises(BadConfig, match=r"missing required field `optimizer` - at `\$\.phases\[\.\.\.\]\.grpo`"):
        load_preset(written(tmp_path, text))


def test_phases_that_are_no_tables_are_refused_in_one_line(tmp_path):
    with pytest.raises(BadConfig, match="Expected `object`, got `int`"):
        load_preset(written(tmp_path, "phases = 3\n"))
    with pytest.raises(BadConfig, match="Expected `object`, got `int`"):
        load_preset(written(tmp_path, "[phases]\na = 3\n"))


def test_the_rows_of_calibration_differ_in_advantages_and_reward_alone():
    config = load_preset("tiny_cpu", "calibration")
    divided, undivided, likelihood = (config.phases[name].grpo for name in ("divided", "undivided", "log_likelihood"))
    assert (divided, undivided) == (TINY.grpo, msgspec.structs.replace(TINY.grpo, scale_rewards="none"))
    assert likelihood == undivided
    rewards = [config.phases[name].get_reward(RewardConfig()) for name in ("divided", "undivided", "log_likelihood")]
    assert [reward.kind for reward in rewards] == ["binary", "binary", "log_likelihood"]


def test_the_likelihood_is_no_reward_of_a_whole_run():
    with pytest.raises(BadConfig, match=r"only GRPO measures, but the last table scores texts"):
        msgspec.structs.replace(TINY, reward="log_likelihood")
    with pytest.raises(BadConfig, match=r"Unknown reward preset 'likelihood'"):
        PhaseConfig(label="x", method="grpo", reward="likelihood")


def test_a_reward_that_requires_rationales_is_refused_where_the_prompt_asks_for_none():
    reward = RewardConfig(requires_rationale=True, self_certainty_weight=0.0)
    run = msgspec.structs.replace(TINY, reward=reward)
    assert run.rewards_rationales
    assert not msgspec.structs.replace(run, reward="binary").rewards_rationales
    with pytest.raises(BadConfig, match=r"phases\.\w+: reward\.requires_rationale pays only replies with a rationale"):
        msgspec.structs.replace(run, prompt=msgspec.structs.replace(run.prompt, rationales=False))


@pytest.mark.parametrize(
    ("text", "length"),
    [("[grpo]\nepochs = 2.0\n", (None, 2.0)), ("[phases.shop_r1.grpo]\nepochs = 0.5\n", (None, 0.5))],
)
def test_a_length_in_epochs_replaces_one_in_steps_and_the_other_way_round(tmp_path, text, length):
    preset = written(tmp_path, f'base = "tiny_cpu"\n{text}')
    again = written(tmp_path, 'base = "mine.toml"\n[phases.shop_r1.grpo]\nsteps = 3\n', "again.toml")
    lengths = []
    for name in (preset, again):
        grpo = load_preset(name).phases["shop_r1"].grpo
        lengths.append((grpo.steps, grpo.epochs))
    assert lengths == [length, (3, None)]
    grpo = prepare(["--preset", "tiny_cpu", "--grpo.epochs", "1.5", "--out", str(tmp_path)])[2].phases["shop_r1"].grpo
    assert grpo is not None and (grpo.steps, grpo.epochs) == (None, 1.5)
    with pytest.raises(BadConfig, match=r"\[grpo\] has either steps or epochs, not 3 and 1.0"):
        load_preset(written(tmp_path, 'base = "tiny_cpu"\n[grpo]\nsteps = 3\nepochs = 1.0\n', "both.toml"))


def test_grpo_samples_from_no_policy_that_only_chooses_among_a_page_s_actions(tmp_path):
    preset = written(tmp_path, 'base = "tiny_cpu"\n[phases.sft]\nmethod = "candidate_likelihood"\n')
    with pytest.raises(
        BadConfig, match=r"shop_r1 is grpo, which samples from the whole vocabulary, and starts from 'sft'"
    ):
        load_preset(preset)
    rows = written(
        tmp_path,
        '[phases.sft]\nlabel = "a"\nmethod = "candidate_likelihood"\n'
        '[phases.same]\nlabel = "b"\nmethod = "none"\nstart = "sft"\n'
        '[phases.taught]\nlabel = "c"\nmethod = "sft"\nstart = "same"\n',
        "rows.toml",
    )
    config = load_preset("tiny_cpu", rows)
    assert [config.is_restricted(name) for name in config.phases] == [True, True, False]
    assert config.phases["sft"].sft == TINY.sft
