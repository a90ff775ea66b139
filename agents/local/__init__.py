"""Any language model on this machine as an agent, asked as it is: `local?path=…` (agent.py; in vLLM: vllm_agent.py)."""
