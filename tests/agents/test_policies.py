"""The two policies that come with the package: they predict the demo shop, at once and whatever persona is shown."""

import pytest

from agents.policies import FOLDER
from agents.policies.__main__ import main
from agents.registry import make_agent
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore
from shop_env.observation import observe_session
from shop_env.replies import Reply, parse_reply

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def sessions() -> list[Session]:
    store = SessionStore.open("demo")
    return [store.session(name) for name in store.session_ids("test")[:60]]


@pytest.mark.parametrize("name", ["demo_sft", "demo_shop_r1"])
def test_they_predict_shoppers_far_better_than_rules_do(name, sessions):
    agent = make_agent(f"{name}?temperature=0")
    steps = [pair for session in sessions for pair in zip(observe_session(session), session.steps, strict=True)]
    scored = [(seen, step.action) for seen, step in steps if seen["history"]]
    replies = agent.act_batch([seen for seen, _ in scored], seeds=[0] * len(scored))
    right = 0
    for reply, (_, action) in zip(replies, scored, strict=True):
        parsed = parse_reply(reply)
        right += isinstance(parsed, Reply) and parsed.action == action
    assert right / len(scored) > 0.45  # majority has 0.10, copy_match 0.23


def test_a_policy_trained_without_persona_and_goal_is_shown_neither(sessions):
    agent = make_agent("demo_shop_r1?temperature=0")
    seen = observe_session(sessions[0])[2]
    other = {**seen, "persona": "I never buy anything.", "goal": "Buy a red tent."}
    first, second = (agent.act(observation) for observation in (seen, other))
    assert first == second


def test_each_is_half_as_large_as_its_checkpoint_and_has_no_other_files():
    for name in ("sft", "shop_r1"):
        files = {file.name: file.stat().st_size for file in (FOLDER / name).iterdir()}
        assert files["model.safetensors"] < 1_200_000
        assert {"config.json", "tokenizer.json", "shop_r1_checkpoint.json"} < files.keys()


def test_a_folder_that_is_no_run_is_refused(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert "no checkpoint" in capsys.readouterr().err
