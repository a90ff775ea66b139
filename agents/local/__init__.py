"""Language models on this machine as agents.

policy_agent.py      a trained policy, from its checkpoint, and how likely it holds each action
weighed_actions.py   how it weighs a page's candidate actions: probabilities, replies by whole actions
agent.py             any other model, zero-shot: `local?path=…`
"""

import train  # noqa: F401 - before torch: it says how torch's threads wait for one another
