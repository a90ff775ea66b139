"""Functions and Gymnasium-style policies are agents."""

from pathlib import Path

import pytest

from agents.registry import make_agent
from replay_sessions.foundation.errors import AgentFailed, BadConfig
from replay_sessions.schema import Click, Terminate
from shop_env.evaluation.evaluate import evaluate
from shop_env.replies import Reply, parse_reply
from tests.scored_steps import first_seen

PAGE = '<a name="cart">Cart</a><a name="help">Help</a>'
SEEN = first_seen(PAGE)
FILE = """
from random import Random

import numpy as np

from replay_sessions import Click
from shop_env import format_reply


def act(observation, *, seed=None, name="help"):
    return format_reply(str(Random(seed).random()), Click(name=name))


def make(name="cart"):
    return Policy(name)


class Policy:
    def __init__(self, action=1):
        self.action = action

    def predict(self, observation):
        return self.action, None


class OfNumpy(Policy):
    def predict(self, observation):
        return np.int64(2), None


class OfActions(Policy):
    def predict(self, observation):
        return Click(name="cart"), {"a": "state"}


class OfText(Policy):
    def predict(self, observation):
        return act(observation, name="cart"), None


class Bare(Policy):
    def predict(self, observation):
        return 1


class Drawing(Policy):
    def reset(self, *, seed=None):
        self.random = Random(seed)

    def predict(self, observation):
        return self.random.randrange(3), None
"""


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FILE, encoding="utf-8")
    return path


def action(spec: str, seed: int = 0) -> object:
    agent = make_agent(spec)
    agent.reset(seed=seed)
    reply = parse_reply(agent.act(SEEN))
    assert isinstance(reply, Reply)
    return reply.action


def test_a_function_of_an_observation_is_an_agent_with_its_arguments_and_the_step_s_seed(file):
    assert action(f"{file}:act") == Click(name="help")
    assert action(f"{file}:act?name=cart") == Click(name="cart")
    agent = make_agent(f"{file}:act")
    replies = []
    for seed in (1, 2, 1):
        agent.reset(seed=seed)
        replies.append(agent.act(SEEN))
    assert replies[0] == replies[2] != replies[1]


def test_any_other_function_makes_an_agent(file):
    assert make_agent(f"{file}:make").act(SEEN) == "cart"


def test_an_argument_that_a_function_does_not_take_is_a_bad_call(file):
    with pytest.raises(BadConfig, match="it takes these arguments: seed, name"):
        make_agent(f"{file}:act?nmae=cart")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("Policy", Click(name="cart")),
        ("Policy?action=0", Terminate()),
        ("OfNumpy", Click(name="help")),
        ("OfActions", Click(name="cart")),
        ("OfText", Click(name="cart")),
    ],
)
def test_a_policy_predicts_a_number_of_a_candidate_an_action_or_a_reply(file, policy, expected):
    assert action(f"{file}:{policy}") == expected


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("Policy?action=3", "candidate 3; the page has 3, numbered from 0"),
        ("Policy?action=-1", "candidate -1"),
        ("Policy?action=0.5", "must be text, a Click"),
        ("Bare", r"predict returned 1; it must return \(action, state\)"),
    ],
)
def test_a_policy_that_predicts_nothing_of_the_kind_fails_with_the_reason(file, policy, said):
    with pytest.raises(AgentFailed, match=said):
        make_agent(f"{file}:{policy}").act(SEEN)


def test_a_policy_that_draws_is_seeded_before_each_step(file, planted_store):
    agent = make_agent(f"{file}:Drawing")
    first, again = (evaluate(agent, planted_store, "test", seed=1) for _ in range(2))
    assert [record.reply for record in first] == [record.reply for record in again]
    assert len({record.reply for record in first}) > 1
