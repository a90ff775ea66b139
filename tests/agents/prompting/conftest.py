"""Agents that ask a scripted server."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.prompting.agent import PromptingAgent
from tests.agents.prompting.scripted_server import ScriptedServer

MakeAgent = Callable[..., PromptingAgent]


@pytest.fixture
def make_prompting() -> Iterator[MakeAgent]:
    """Makes an agent that asks a server."""

    def make(server: ScriptedServer | str, **options: Any) -> PromptingAgent:
        base_url = server if isinstance(server, str) else server.base_url
        made.append(PromptingAgent(**{"base_url": base_url, "model": "scripted", "timeout_s": 20, **options}))
        return made[-1]

    made: list[PromptingAgent] = []
    yield make
    for agent in made:
        agent.close()
