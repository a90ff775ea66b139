"""Options that ask a scripted server without long waits."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.prompting.agent import PromptingAgent
from tests.agents.prompting.scripted_server import ScriptedServer

MakeAgent = Callable[..., PromptingAgent]


@pytest.fixture
def make_prompting(tmp_path: Path) -> Iterator[MakeAgent]:
    """Makes an agent that asks a server; all of a test share one cache."""

    def make(server: ScriptedServer | str, **options: Any) -> PromptingAgent:
        base_url = server if isinstance(server, str) else server.base_url
        usual = {"model": "scripted", "cache": str(tmp_path / "asked.sqlite"), "longest_wait_s": 0.05, "timeout_s": 20}
        made.append(PromptingAgent(**{"base_url": base_url, **usual, **options}))
        return made[-1]

    made: list[PromptingAgent] = []
    yield make
    for agent in made:
        agent.close()
