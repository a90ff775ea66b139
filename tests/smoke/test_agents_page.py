"""The agents of docs/agents.md run as they stand there."""

import re

import pytest

from agents.catalogue import AGENTS, GROUPS
from agents.conformance import check_agent
from replay_sessions.store import SessionStore
from tests.demo_stores import demo_store_at
from tests.processes import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, flags=re.DOTALL))


@pytest.mark.parametrize("agent", ["my_function.py:act", "my_agent.py:MostClicked", "my_policy.py:Last"])
def test_an_agent_of_the_page_keeps_the_contract(agent, tmp_path):
    demo_store_at(tmp_path / "store", 12, seed=0)
    file = agent.partition(":")[0]
    (tmp_path / file).write_text(BLOCKS[file], encoding="utf-8")
    report = check_agent(f"{tmp_path / agent}", store=SessionStore.open(tmp_path / "store"))
    assert report.passed, str(report)


def test_the_readme_s_first_agent_keeps_the_contract(tmp_path):
    (readme,) = re.findall(r"```python\n# my_agent\.py\n(.*?)```", README, flags=re.DOTALL)
    (tmp_path / "first.py").write_text(readme, encoding="utf-8")
    report = check_agent(f"{tmp_path / 'first.py'}:FirstElement")
    assert report.passed, str(report)


def test_every_fitted_baseline_is_documented():
    fitted = list(GROUPS["baselines"])
    assert re.findall(r"^- `(\w+)`: ", PAGE, flags=re.MULTILINE)[-len(fitted) :] == fitted
    assert set(fitted) <= set(AGENTS)
