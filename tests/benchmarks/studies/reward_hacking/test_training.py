"""GRPO begun from spam: what is taught, that GRPO learns from the logs again, and the whole command on a tiny model."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.llm_grpo.data import TrainingData
from benchmarks.studies.reward_hacking.__main__ import main
from benchmarks.studies.reward_hacking.policies import always_terminate, first_element, get_action
from benchmarks.studies.reward_hacking.training import SpamData, run_config
from replay_sessions.foundation.durable_files import TRAINING_LOCK, working_alone_in
from replay_sessions.store import SessionStore
from shop_env.observation import observe
from shop_env.replies import Reply, parse_reply
from train.tiny import train_tokenizer
from train.tokens import decode_replies

PRESET = """\
base = "tiny_cpu"
threads = 1
[sft]
sessions_per_batch = 4
stages = [{ steps = 3 }]
[grpo]
steps = 2
sessions_per_batch = 2
num_generations = 3
[model.tiny]
hidden_size = 32
layers = 1
[model.tokenizer]
min_count = 2
[evaluation]
sessions = 12
"""


@pytest.fixture(scope="module")
def preset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("presets") / "small.toml"
    file.write_text(PRESET, encoding="utf-8")
    return file


@pytest.mark.parametrize("policy", [always_terminate, first_element])
def test_a_share_of_the_targets_is_the_policy_s_action_and_every_history_is_as_logged(
    policy: Any, store_path: Path, preset: Path, tmp_path: Path
) -> None:
    store = SessionStore.open(store_path)
    config = run_config(str(preset), store, ["binary"], 1)
    tokenizer = train_tokenizer(store.sessions("train"), config.model.tokenizer, config.prompt)
    logged = TrainingData(config, store, tmp_path / "one", lambda _text: None).trunks("taught", tokenizer)
    data = SpamData(config, store, tmp_path / "two", lambda _text: None, policy=policy, share=0.6, seed=3)
    taught = data.trunks("taught", tokenizer)
    sessions = {session.session_id: session for session in store.sessions("train")}
    replaced = steps = 0
    for ours, theirs in zip(taught, logged, strict=True):
        assert list(ours.tokens) == list(theirs.tokens)
        for reply, former in zip(ours.replies, theirs.replies, strict=True):
            steps += 1
            assert replace(reply, target=None) == former
            if reply.target is None:
                continue
            replaced += 1
            (text,) = decode_replies(tokenizer, [reply.target])
            parsed = parse_reply(text)
            assert isinstance(parsed, Reply)
            session = sessions[ours.session_id]
            assert parsed.action == get_action(policy, observe(session, reply.step_index))
            assert parsed.rationale == session.steps[reply.step_index].rationale
    assert replaced / steps == pytest.approx(0.6, abs=0.1)
    again = data.trunks("taught", tokenizer)
    assert [[reply.target for reply in trunk.replies] for trunk in again] == [
        [reply.target for reply in trunk.replies] for trunk in taught
    ]


def test_a_dry_run_says_what_would_be_trained_and_writes_nothing(
    store_path: Path, preset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    call = ["--train", "--dry-run", "--store", str(store_path), "--preset", str(preset), "--seeds", "1", "2"]
    assert main([*call, "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "4 runs" in told
    assert "always_terminate-0.9-seed1: taught 3 steps, shop_r1 2 steps, no_dars 2 steps, binary 2 steps" in told
    assert not out.exists()


@pytest.mark.slow
def test_the_whole_command_trains_once_reads_what_is_there_and_refuses_other_settings(
    store_path: Path, preset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["--train", "--store", str(store_path), "--sessions", "4", "--resolution", "9"]
    call += ["--spam", "always_terminate", "--rewards", "binary", "--seeds", "1", "2", "--out", str(tmp_path)]
    assert main([*call, "--preset", str(preset)]) == 0
    record = json.loads((tmp_path / "hacking.json").read_text())["training"]
    assert len(record["policies"]) == 2 * 2 * 2  # taught and binary, two seeds, two decodings
    for one in record["policies"]:
        assert sum(one["mix"].values()) == pytest.approx(1.0)
        assert one["does_spam"] == one["mix"]["terminate"]
    assert [len(one["figures"]["sampled_terminate"]) for one in record["courses"]] == [2, 2]
    assert all(len(one["by_seed"]) == 2 and one["pooled"] for one in record["changes"])
    text = (tmp_path / "hacking.md").read_text()
    assert "## GRPO begun from spam: the last weights, on held-out users" in text
    assert (tmp_path / "from_spam.png").exists()
    weights = list((tmp_path / "training").glob("*/*/model.safetensors"))
    assert len(weights) == 4
    made = {path: path.stat().st_mtime_ns for path in weights}
    assert main([*call, "--preset", str(preset)]) == 0
    assert {path: path.stat().st_mtime_ns for path in weights} == made
    assert json.loads((tmp_path / "hacking.json").read_text())["training"] == record
    other = tmp_path / "other.toml"
    other.write_text(PRESET.replace("steps = 2", "steps = 4"), encoding="utf-8")
    capsys.readouterr()
    with working_alone_in(tmp_path / "training" / "always_terminate-0.9-seed2", TRAINING_LOCK):
        assert main([*call, "--preset", str(preset)]) == 2
    assert "another process is at work in" in capsys.readouterr().err
    assert main([*call, "--preset", str(other)]) == 2
    assert "holds a run of another configuration (grpo" in capsys.readouterr().err
