"""An agent for shop-r1: a policy that chooses among the possible actions on the page that a shopper sees.

shop-r1 agents check policy_agent.py:PolicyAgent
shop-r1 rank --agents policy_agent.py:PolicyAgent,random --out boards/policy_agent
"""

from shop_env import Observation
from shop_env.candidates import candidate_actions
from shop_env.shopper_words import words_of


class PolicyAgent:
    """Chooses the candidate that shares most words with the goal; number 0, terminate, if none shares any."""

    def predict(self, observation: Observation) -> tuple[int, None]:
        """Returns the number of one of `candidate_actions(observation)`, and the state, which is always None."""
        goal = set(words_of(observation["goal"]))
        shared = [len(goal & set(words_of(getattr(action, "name", "")))) for action in candidate_actions(observation)]
        return max(range(len(shared)), key=shared.__getitem__), None
