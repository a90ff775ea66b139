"""An agent for shop-r1: predicts a shopper's next action from the page that the shopper sees.

shop-r1 agents check class_agent.py:ClassAgent
shop-r1 rank --agents class_agent.py:ClassAgent,random --out boards/class_agent
"""

import random

from replay_sessions import Action, Click, Terminate, find_elements
from shop_env import Observation, format_reply


class ClassAgent:
    """Clicks an element that shares most words with the goal; terminates if none shares any."""

    def __init__(self, patience: int = 20) -> None:  # class_agent.py:ClassAgent?patience=5
        self.patience = patience
        self.random = random.Random()

    def reset(self, *, seed: int | None = None) -> None:
        """Forgets earlier observations and sets the seed; called before every step."""
        self.random = random.Random(seed)

    def act(self, observation: Observation) -> str:
        """Returns a reply with a rationale and an action; an observation has page, history, persona, goal and step."""
        action = self.choose(observation)
        why = "I have seen enough." if isinstance(action, Terminate) else "This comes nearest to what I want."
        return format_reply(why, action)

    def choose(self, observation: Observation) -> Action:
        goal_words = set(observation["goal"].lower().split())
        shared = {
            element.name: len(goal_words & set(element.text.lower().split()))
            for element in find_elements(observation["page"])
            if element.accepts == "click"
        }
        best = max(shared.values(), default=0)
        if best == 0 or observation["step"] >= self.patience:
            return Terminate()
        return Click(name=self.random.choice([name for name, count in shared.items() if count == best]))
