"""The small stores of tests/agents, which the evaluation is tested on too."""

from tests.agents.conftest import demo_store as demo_store
from tests.agents.conftest import planted_store as planted_store
