"""The ceiling: the best that any agent can reach on the demo shop, whose shoppers' policy is known.

The demo shop's shoppers draw their actions from probabilities p(a | observation). An agent that always gives the
likeliest action is right with probability max p; one that samples from p sharpened to q ∝ p^(1/T) is right with
probability Σ p·q. No agent that sees the same observation can do better than the first.
"""

from collections.abc import Mapping
from statistics import fmean

from replay_sessions import demo_shop
from replay_sessions.foundation.table import Estimate
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.evaluation.results import ResultRow
from shop_env.evaluation.scored_steps import AnySplit, scored_steps
from shop_env.observation import ContextConfig


def is_demo_store(store: SessionStore) -> bool:
    return store.manifest.source == demo_shop.SOURCE


def ceiling_rows(
    store: SessionStore,
    split: AnySplit,
    *,
    context: ContextConfig | None = None,
    temperature: float = 0.6,
    skip_first_action: bool = True,
    max_sessions: int | None = None,
) -> list[ResultRow]:
    """The ceiling as rows of a table: of the likeliest action, and of actions sampled at a temperature.

    None where it is not known: the shoppers' policy needs the demo shop, their own persona, and complete pages.
    """
    context = context or ContextConfig()
    if not is_demo_store(store) or context.persona != "matched" or context.budget is not None:
        return []
    greedy, sampled, types = [], [], []
    for step in scored_steps(
        store, split, context=context, skip_first_action=skip_first_action, max_sessions=max_sessions
    ):
        policy = demo_shop.action_probabilities(step.observation)
        best = max(policy, key=policy.__getitem__)
        shares = sharpened(policy, temperature)
        greedy.append(policy[best])
        sampled.append(sum(probability * shares[action] for action, probability in policy.items()))
        types.append(sum(probability for action, probability in policy.items() if type(action) is type(best)))
    of_best = {"exact_accuracy": Estimate(fmean(greedy)), "type_accuracy": Estimate(fmean(types))}
    of_sampled = {"exact_accuracy": Estimate(fmean(sampled))}
    sessions = len(store.session_ids(split)[:max_sessions])
    return [
        ResultRow(label=label, figures=figures, steps=len(greedy), sessions=sessions, known=True)
        for label, figures in (("ceiling", of_best), (f"ceiling at T = {temperature:g}", of_sampled))
    ]


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
