"""Estimates effects of prices, ratings and places from the coefficients of the conditional logit `choice`.

    print(coefficient_table("stores/mine").markdown())

An effect is the change of an action's log-odds, all else equal, with one more unit of a feature, for each frequent
role. Intervals are clustered by user (sandwich estimator).
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from agents.adapted import Floats
from agents.baselines.choice_model import ChoiceModel, FitBatch, sum_rows
from agents.baselines.fitted import Labelled, train_steps
from replay_sessions.foundation.table import Estimate, Table, columns
from replay_sessions.store import SessionStore
from shop_env.choices.facts import FEATURES, OfferReader
from shop_env.choices.offers import amounts
from shop_env.metrics.between_users import cluster_sums
from shop_env.observation import ContextConfig
from shop_env.train_view import TrainView

MIN_SHARE = 0.02  # of all steps; roles that are taken less often are left out
NORMAL_95 = 1.96
# An effect is a weighted sum of features; BUDGET is replaced by the budget or price that the store's prices relate to.
EFFECTS = {
    "price up by 10% of BUDGET": {"price / budget": 0.1},
    "the same, above BUDGET": {"price / budget": 0.1, "price over budget": 0.1},
    "one star more": {"rating": 1.0},
    "ten times the reviews": {"reviews, log": 1.0},
    "with a badge": {"badge": 1.0},
    "out of stock": {"out of stock": 1.0},
    "from the first place to the second": {"place": 0.1, "place, log": float(np.log(2))},
    "from the fifth place to the sixth": {"place": 0.1, "place, log": float(np.log(6 / 5))},
    "one more of the wanted words": {"wanted words": 1.0},
    "another kind of product": {"another kind": 1.0},
    "the product has one more of the wanted words": {"product: wanted words": 1.0},
    "shipping up by 10% of BUDGET": {"shipping / budget": 0.1, "total / budget": 0.1},
    "the total 10% further above BUDGET": {"total / budget": 0.1, "total over budget": 0.1},
    "done before": {"done before": 1.0},
    "after twice as many steps": {"steps so far, log": float(np.log(2))},
}


def coefficient_table(store: TrainView | str, *, max_steps: int | None = None) -> Table:
    """Fits `choice` to the train split of a store, and returns its effects with 95% intervals over users.

    Args:
        store: A view, or the path of a store, which is read with the goals of its shoppers if the log has them.
        max_steps: The maximum number of steps to fit to; None means all.
    """
    if isinstance(store, str):
        store = TrainView(SessionStore.open(store), ContextConfig(goal="shown"))
    model = ChoiceModel(store, first_action=True, max_steps=max_steps)
    _, examples = train_steps(store, True, False, max_steps, OfferReader)
    labelled = [((page, chosen), user) for page, _, chosen, user in examples if chosen is not None]
    effects = estimate_changes(model, [step for step, _ in labelled], [user for _, user in labelled])
    goals = (session.goal or "" for session in store.sessions() if store.context.goal == "shown")
    has_budgets = any(any(amounts(goal)) for goal in goals)
    budget = "the goal's budget" if has_budgets else "the store's median price"
    return Table(
        columns=columns("action", "change", nats=("log-odds",)),
        rows=[(role, name.replace("BUDGET", budget), estimate) for role, name, estimate in effects],
        title="How the log-odds of an action change, all else equal, with 95% intervals over users",
        name="coefficients",
    )


def estimate_changes(
    model: ChoiceModel, labelled: Sequence[Labelled], users: Sequence[str]
) -> Iterator[tuple[str, str, Estimate]]:
    """Yields the role, the name and the change, with its 95% interval, of each effect.

    An effect is left out for roles within which its features do not vary. The covariance is joint over the frequent
    roles. The coefficients of personas, categories and other roles are fixed at the fit, so intervals are somewhat too
    short where those are correlated with the effects.

    Args:
        labelled: The steps to estimate from: each page with the index of its taken choice.
        users: The user of each step, (steps,).
    """
    batches = model.batches(labelled)
    taken = Counter(page.choices[chosen].role for page, chosen in labelled)
    roles = [role for role, count in taken.most_common() if count >= MIN_SHARE * len(labelled) and role != "terminate"]
    numbers = [model.roles[role] for role in roles]
    slopes, curvature = _information(model, batches, numbers)
    by_user = cluster_sums(slopes, np.unique(users, return_inverse=True)[1])
    bread = np.linalg.pinv(curvature)
    covariance = len(by_user) / (len(by_user) - 1) * bread @ by_user.T @ by_user @ bread
    rows = [batch.rows for batch in batches]
    facts, role_of, kinds = (
        np.concatenate([getattr(batch_rows, name) for batch_rows in rows]) for name in ("facts", "role", "kind")
    )
    shared, role_weights, kind_weights, _ = model.levels(model.weights)
    for position, (role, number) in enumerate(zip(roles, numbers, strict=True)):
        is_of_role = role_of == number
        weights = shared[0] + role_weights[number, 0] + kind_weights[kinds[is_of_role]].mean(axis=0)
        varies = np.ptp(facts[is_of_role], axis=0) > 0
        block = slice(position * len(FEATURES), (position + 1) * len(FEATURES))
        for name, units in EFFECTS.items():
            effect = np.array([units.get(feature, 0.0) for feature in FEATURES]) / model.scale
            if varies[effect != 0].all():
                change, margin = effect @ weights, NORMAL_95 * np.sqrt(effect @ covariance[block, block] @ effect)
                yield role, name, Estimate(float(change), float(change - margin), float(change + margin))


def _information(model: ChoiceModel, batches: Sequence[FitBatch], roles: Sequence[int]) -> tuple[Floats, Floats]:
    """Computes the gradient of each step's log-likelihood, (steps, roles * features), and the summed curvature."""
    slopes, curvature = [], np.zeros((len(roles) * len(FEATURES),) * 2)
    for rows, taken, _ in batches:
        shares = model.shares(rows, model.weights)
        error = -shares
        error[taken] += 1
        parts: list[tuple[Floats, Floats]] = []
        for number, role in enumerate(roles):
            indices = np.flatnonzero(rows.role == role)
            facts, steps = rows.facts[indices], sum_rows(rows.step[indices], len(rows.starts))
            weighted = facts * shares[indices, None]
            parts.append((steps @ (facts * error[indices, None]), steps @ weighted))
            block = slice(number * len(FEATURES), (number + 1) * len(FEATURES))
            curvature[block, block] += weighted.T @ facts
        slope, mean = map(np.hstack, zip(*parts, strict=True))
        curvature -= mean.T @ mean
        slopes.append(slope)
    return np.concatenate(slopes), curvature
