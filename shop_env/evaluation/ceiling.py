"""The ceiling: the best that any agent can reach on the demo shop, whose shoppers draw from known probabilities p.

The likeliest action is right with probability max p, one sampled from q ∝ p^(1/T) with probability Σ p·q. Of a hidden
persona and goal p is averaged over those that fit what is shown (replay_sessions/demo_shop/visits.py), which makes it
the best prediction. For the goals of the larger shops, and before the first page of results, that takes too long: there
the policy knows the goal, and its rows say so.
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
    """The ceiling as rows of a table: of the likeliest action, and of actions sampled at a temperature.

    None where it is not known: that needs the demo shop, no persona but the shoppers' own, complete pages, and metrics
    that weigh no steps and count no other texts as exact.
    """
    choices = metric_preset(config.metrics)
    shown = shoppers_context(store, config.context, first_action=config.first_action)
    if shown is None or choices.weighting or choices.text != "exact":
        return []
    context, knowing = shown
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
    of_best = {"exact_accuracy": Estimate(fmean(greedy)), "type_accuracy": Estimate(fmean(types))}
    if config.likelihood:
        of_best |= {"nll": Estimate(fmean(entropies)), "top1_accuracy": Estimate(fmean(greedy))}
    of_sampled = {"exact_accuracy": Estimate(fmean(sampled))}
    sessions = len({session_id for session_id, _ in keys})
    return [
        ResultRow(label=label, figures=figures, steps=len(greedy), sessions=sessions, known=True)
        for label, figures in ((f"ceiling{knowing}", of_best), (f"ceiling at T = {temperature:g}{knowing}", of_sampled))
    ]


def shoppers_context(
    store: SessionStore, context: ContextConfig, *, first_action: bool = False
) -> tuple[ContextConfig, str] | None:
    """Returns the context that the demo shop's own policy needs beside agents with this one, and its label's ending;
    None: the store is of another shop.
    """
    if not is_demo_store(store):
        return None
    is_small = store.manifest.options.get("page_size", "small") == "small"
    if context.goal == "shown" or (is_small and not first_action):
        return context, ""
    return msgspec.structs.replace(context, goal="shown"), " (knows the goal)"


def sharpened(probabilities: Mapping[Action, float], temperature: float) -> dict[Action, float]:
    """p^(1/T), normalised; T = 0 puts everything on the (first) likeliest action."""
    best = max(probabilities, key=probabilities.__getitem__)
    if temperature == 0:
        return {action: float(action == best) for action in probabilities}
    powers = {
        action: (probability / probabilities[best]) ** (1 / temperature)
        for action, probability in probabilities.items()
    }
    total = sum(powers.values())
    return {action: power / total for action, power in powers.items()}
