"""Texts that are not known to be submitted: `input` in the store, the prompt, the history, replies and their parser."""

import json
from pathlib import Path

import pytest

from agents.baselines.rules import CopyMatchAgent
from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.store import SessionStore
from shop_env.env import ReplayEnv
from shop_env.evaluation.evaluate import evaluate
from shop_env.prompts import PromptConfig, prompt_of, render_prompt
from shop_env.replies import format_reply
from tests.stores import store_at

PAGE = '<input name="search"/><a name="cart">Cart</a>'


def store_of(path: Path, *submitted: bool) -> SessionStore:
    """A session of a click, one typed text for each, and the end."""
    typed: list[Action] = [TypeAndSubmit(name="search", text="kettle", submitted=each) for each in submitted]
    actions = [Click(name="cart"), *typed, Terminate()]
    steps = tuple(Step(page=PAGE, action=action, rationale="I need it.") for action in actions)
    return store_at(path, [Session(session_id="s", user_id="u", source="test", steps=steps)])


@pytest.mark.parametrize(
    ("submitted", "typing"),
    [((), "type_and_submit"), ((True,), "type_and_submit"), ((False, False), "input"), ((True, False), "both")],
)
def test_a_store_says_which_words_for_typing_its_log_has(submitted, typing, tmp_path):
    store = store_of(tmp_path / "store", *submitted)
    assert store.typing == typing
    assert prompt_of(store, PromptConfig()).typing == typing
    assert prompt_of(store, PromptConfig(typing="input")).typing == "input"


def test_on_a_store_of_inputs_a_perfect_reply_is_an_input(tmp_path):
    store = store_of(tmp_path / "store", False, False)
    env = ReplayEnv(store, "all")
    env.reset(seed=0)
    reply = format_reply("I need it.", TypeAndSubmit(name="search", text="kettle", submitted=False))
    observation, reward, _, _, info = env.step(reply)
    assert info["logged_action"] == json.loads(reply)["action"] == {"type": "input", "name": "search", "text": "kettle"}
    assert reward == info["best_reward"] > 1000
    past = render_prompt(observation, prompt_of(store, PromptConfig()))[4]
    assert past == {"role": "assistant", "content": reply}
    _, reward, _, _, _ = env.step(reply.replace("input", "type_and_submit", 1))  # of agents that choose among actions
    assert reward == info["best_reward"]


def test_on_a_store_of_submitted_texts_an_input_is_no_action(tmp_path):
    env = ReplayEnv(store_of(tmp_path / "store", True), "all")
    env.reset(seed=0)
    reply = format_reply("", TypeAndSubmit(name="search", text="kettle", submitted=False))
    _, reward, _, _, info = env.step(reply)
    assert (reward, info["problem"]) == (0.0, "unknown_type")


def test_agents_that_choose_among_actions_are_right_on_either_store(tmp_path):
    for name, submitted in (("typed", True), ("inputs", False)):
        store = store_of(tmp_path / name, submitted, submitted)
        records = evaluate(CopyMatchAgent(), store, "all")
        assert [record.problem for record in records] == [None] * 3
        assert {record.logged["type"] for record in records} == {"type_and_submit", "terminate"}
