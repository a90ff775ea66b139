"""The LLM policy: trained by SFT and GRPO (train.py), and as an agent from its checkpoint (agent.py)."""
