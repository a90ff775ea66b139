"""An agent for shop-r1: predicts a shopper's next action from the page that the shopper sees.

shop-r1 agents check function_agent.py:act
shop-r1 rank --agents function_agent.py:act,random --out boards/function_agent
"""

import random

from replay_sessions import Click, Terminate, find_elements
from shop_env import Observation, format_reply


def act(observation: Observation, *, seed: int | None = None, patience: int = 20) -> str:
    """Clicks an element that shares most words with the goal; terminates if none shares any.

    An observation has page, history, persona, goal and step. function_agent.py:act?patience=5 sets `patience`.
    """
    goal_words = set(observation["goal"].lower().split())
    shared = {
        element.name: len(goal_words & set(element.text.lower().split()))
        for element in find_elements(observation["page"])
        if element.accepts == "click"
    }
    best = max(shared.values(), default=0)
    if best == 0 or observation["step"] >= patience:
        return format_reply("I have seen enough.", Terminate())
    name = random.Random(seed).choice([name for name, count in shared.items() if count == best])
    return format_reply("This comes nearest to what I want.", Click(name=name))
