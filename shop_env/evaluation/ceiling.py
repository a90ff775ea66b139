"""Computes the ceiling: the best metrics of any agent on the demo shop, where shoppers draw from known probabilities p.

The likeliest action is right with probability max p, and an action sampled from q ∝ p^(1/T) with probability Σ p·q. If
persona and goal are hidden, p is the average over those that fit the observation (replay_sessions/demo_shop/visits.py),
which is the best prediction. For the goals of the larger shops, and before the first page of results, the average takes
too long: then the policy knows the goal, and the label of its row says so.
"""

import math
from collections.abc import Mapping
from statistics import fmean

import msgspec

from replay_sessions import demo_shop
from replay_sessions.foundation.table import Estimate
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.evaluation.results import ResultRow
from shop_env.evaluation.scored_steps import EvaluationConfig, steps_at
from shop_env.metrics import metric_preset
from shop_env.observation import ContextConfig


def is_demo_store(store: SessionStore) -> bool:
    return store.manifest.source == demo_shop.SOURCE


def ceiling_rows(store: SessionStore, config: EvaluationConfig, *, temperature: float = 0.6) -> list[ResultRow]:
    """Computes the rows of the ceiling: for the likeliest action, and for actions sampled at a temperature.

    Returns:
        Two rows, or none if the ceiling is unknown. It is known for the demo shop with matched or no personas, complete
        pages, and metrics with equal weights of steps and exact texts.
    """
    choices = metric_preset(config.metrics)
    policy_context = shoppers_context(store, config.context, first_action=config.first_action)
    if policy_context is None or choices.weighting or choices.text != "exact":
        return []
    context, ending = policy_context
    is_known = (context.goal, context.persona) == ("shown", "matched") and context.budget is None
    if not is_known and not (context.persona in ("matched", "none") and context.grows_by_appending):
        return []
    greedy, sampled, types, entropies = [], [], [], []
    keys = config.keys(store)
    for step in steps_at(store, config.split, keys, context):
        policy = demo_shop.action_probabilities(step.observation)
        best = max(policy, key=policy.__getitem__)
        shares = sharpened(policy, temperature)
        greedy.append(policy[best])
        entropies.append(-sum(probability * math.log(probability) for probability in policy.values() if probability))
        sampled.append(sum(probability * shares[action] for action, probability in policy.items()))
        types.append(sum(probability for action, probability in policy.items() if type(action) is type(best)))
    best_row = {"exact_accuracy": Estimate(fmean(greedy)), "type_accuracy": Estimate(fmean(types))}
    if config.likelihood:
        best_row |= {"nll": Estimate(fmean(entropies)), "top1_accuracy": Estimate(fmean(greedy))}
    sampled_row = {"exact_accuracy": Estimate(fmean(sampled))}
    sessions = len({session_id for session_id, _ in keys})
    return [
        ResultRow(label=label, figures=figures, steps=len(greedy), sessions=sessions, known=True)
        for label, figures in ((f"ceiling{ending}", best_row), (f"ceiling at T = {temperature:g}{ending}", sampled_row))
    ]


def shoppers_context(
    store: SessionStore, context: ContextConfig, *, first_action: bool = False
) -> tuple[ContextConfig, str] | None:
    """Returns the context that the demo shop's policy needs for a comparison with agents, and the ending of its label.

    Args:
        context: The context of the agents.
        first_action: Whether first actions are scored too.

    Returns:
        The context and the ending of the label; None if the store is not of the demo shop.
    """
    if not is_demo_store(store):
        return None
    is_small = store.manifest.options.get("page_size", "small") == "small"
    if context.goal == "shown" or (is_small and not first_action):
        return context, ""
    return msgspec.structs.replace(context, goal="shown"), " (knows the goal)"


def sharpened(probabilities: Mapping[Action, float], temperature: float) -> dict[Action, float]:
    """Computes p^(1/T), normalised; with T = 0 the first likeliest action has probability 1."""
    best = max(probabilities, key=probabilities.__getitem__)
    if temperature == 0:
        return {action: float(action == best) for action in probabilities}
    powers = {
        action: (probability / probabilities[best]) ** (1 / temperature)
        for action, probability in probabilities.items()
    }
    total = sum(powers.values())
    return {action: power / total for action, power in powers.items()}
