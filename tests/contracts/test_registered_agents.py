"""Every registered agent keeps the contract that `shop-r1 agents check` holds others to."""

import pytest

from agents.catalogue import AGENTS
from agents.conformance import check_agent
from agents.registry import make_agent
from replay_sessions.store import SessionStore
from tests.demo_stores import demo_store_at

# Arguments: tests/agents/test_sb3.py, …/test_mixture.py, …/local, …/prompting
NEED_MORE = {"sb3", "local", "prompting", "mixture"}


TRAINED = {"demo_sft", "demo_shop_r1"}
NAMES = [
    pytest.param(name, marks=pytest.mark.long if name in TRAINED else ()) for name in sorted(set(AGENTS) - NEED_MORE)
]


@pytest.mark.parametrize("name", NAMES)
def test_registered_agent_keeps_the_contract(name, tmp_path):
    demo_store_at(tmp_path / "store", 12, seed=0)
    report = check_agent(make_agent(name, store=SessionStore.open(tmp_path / "store")))
    assert report.passed, str(report)
