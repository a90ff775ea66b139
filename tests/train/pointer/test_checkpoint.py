"""A pointer's checkpoint holds all that it needs, and damage is one line."""

import numpy as np
import pytest

from agents.child_process import build_agent
from agents.llm_grpo.train import train
from agents.local.agent import local
from agents.local.pointer import PointerPolicy
from agents.registry import make_agent, parse_spec
from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch
from replay_sessions.store import SessionStore
from shop_env.observation import ContextConfig, adapt
from shop_env.train_view import TrainView
from tests.demo_stores import demo_store_at
from tests.json_files import read_json_lines
from tests.scored_steps import GOAL_SHOWN, scored_steps
from train.pointer import fit
from train.pointer.checkpoint import POINTER_FILE, WEIGHTS_FILE, load_pointer, save_pointer
from train.pointer.fit import fit_pointer

SFT = {"label": "s", "method": "sft", "sft": {"stages": [{"steps": 1}], "optimizer": {"lr": 0.1}}}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SessionStore:
    return demo_store_at(tmp_path_factory.mktemp("checkpoint") / "store", 60, seed=2)


@pytest.fixture
def short_fits(monkeypatch) -> None:
    monkeypatch.setattr(fit, "MIN_EPOCHS", 2)
    monkeypatch.setattr(fit, "UPDATES", 20)


@pytest.mark.usefixtures("short_fits")
def test_a_restored_pointer_has_the_same_probabilities(store, tmp_path):
    view = TrainView(store, GOAL_SHOWN)
    pointer = fit_pointer(view, seed=0)
    save_pointer(tmp_path / "p", pointer, made_by="p", store_fingerprint="f", context=view.context)
    observations = [step.observation for step in scored_steps(store, "test", context=GOAL_SHOWN, sessions=4)]
    restored, info = load_pointer(tmp_path / "p")
    assert info.context == view.context
    for (actions, shares), (expected_actions, expected) in zip(
        restored.weigh(observations), pointer.weigh(observations), strict=True
    ):
        assert actions == expected_actions and np.array_equal(shares, expected)
    (tmp_path / "p" / WEIGHTS_FILE).write_bytes(b"no weights")
    with pytest.raises(CheckpointMismatch, match="no checkpoint of a pointer"):
        make_agent(str(tmp_path / "p"))
    (tmp_path / "p" / POINTER_FILE).write_text("{}")
    with pytest.raises(CheckpointMismatch, match="no checkpoint of a pointer"):
        local(str(tmp_path / "p"))


@pytest.mark.usefixtures("short_fits")
def test_the_preset_leaves_a_checkpoint_that_is_an_agent_and_a_row(store, tmp_path):
    folder = tmp_path / "run"
    log = train(preset="pointer_cpu", store=str(store.path), out=str(folder), evaluation={"sessions": 5}, watch=())
    row = next(entry for entry in log.entries if entry.label == "pointer, greedy")
    assert row.row.figures["exact_accuracy"].value >= 0
    assert all("held_out_nll" in line or "loss" in line for line in read_json_lines(folder / "metrics.jsonl"))
    observations = [step.observation for step in scored_steps(store, "test", context=GOAL_SHOWN, sessions=2)]
    direct = fit_pointer(TrainView(store, ContextConfig(goal="hidden", persona="none")), seed=0)
    hidden = [adapt(observation, ContextConfig(persona="none")) for observation in observations]
    expected = [shares for _, shares in direct.weigh(hidden)]
    checkpoint = str(folder / "pointer")
    for agent in (
        make_agent(checkpoint),
        local(checkpoint),
        make_agent(f"local?path={checkpoint}"),
        build_agent(parse_spec(checkpoint), store, GOAL_SHOWN),
    ):
        assert isinstance(agent, PointerPolicy)
        found = [shares for _, shares in agent.distributions(observations)]
        assert all(map(np.array_equal, found, expected))


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"phases": {"more": {"label": "x", "method": "none", "start": "pointer"}}}, "starts from scratch"),
        (
            {"phases": {"s": SFT, "t": {**SFT, "label": "t", "start": "s", "same_compute_as": "pointer"}}},
            "FLOPs are not counted",
        ),
    ],
)
def test_phases_that_do_not_fit_a_pointer_are_refused(tables, message, tmp_path):
    with pytest.raises(BadConfig, match=message):
        train(preset="pointer_cpu", out=str(tmp_path / "run"), **tables)
