"""The LLM policy: trained by SFT and GRPO (train.py), and as an agent from its checkpoint (agent.py)."""

import train  # noqa: F401 - before torch: it says how torch's threads wait for one another
