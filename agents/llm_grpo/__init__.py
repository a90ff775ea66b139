"""The LLM policy's training command (train.py): SFT, then GRPO, then a table of agents (run_agents.py)."""

import train  # noqa: F401 - before torch: it says how torch's threads wait for one another
