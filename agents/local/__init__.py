"""Language models on this machine as agents.

policy_agent.py      a trained policy, from its checkpoint, with its probabilities of actions
weighed_actions.py   computes the probabilities of a page's candidate actions, and replies by whole actions
agent.py             any other model, zero-shot: `local?path=…`
"""

import train  # noqa: F401 - before torch: sets how torch's threads wait
