"""Tests that the agent keeps the contract of shop-r1's agents, and that it clicks what the goal names."""

from pathlib import Path

from agents import check_agent, make_agent
from replay_sessions import Click
from shop_env import Observation, Reply, parse_reply

AGENT = f"{Path(__file__).with_name('class_agent.py')}:ClassAgent"


def test_it_keeps_the_contract() -> None:
    report = check_agent(AGENT)
    assert report.passed, f"\n{report}"


def test_it_clicks_what_the_goal_names() -> None:
    agent = make_agent(AGENT)
    agent.reset(seed=0)
    page = '<a name="kettle">red kettle</a><a name="lamp">blue lamp</a>'
    observation = Observation(page=page, history=(), persona="", goal="a blue lamp", step=0)
    reply = parse_reply(agent.act(observation))
    assert isinstance(reply, Reply)
    assert reply.action == Click(name="lamp")
