"""The lab from end to end: logs of A, agents that learn from them, walks, effects, predictions.

logs of A ─► make_agent(store=…) ─► walks through A and each variant ─┐
the known shoppers ─► the same, on more visits ───────────────────────┴─► true and predicted effects ─► LabRow

PurchaseModel is a baseline: a logistic regression of A's logs on what the shop shows for the need: the prices on the
first page of a search for it, beside the budget, stars, badges, stock, and what shipping adds. The difference of its
probabilities with and without a change is the effect that it predicts. What never varies in A's logs, such as one more
page at checkout, it cannot know.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from agents.agent_code import code_digest, deciding_arguments
from agents.baselines.rules import OracleAgent
from agents.registry import agent_class, make_agent
from benchmarks.ab.config import AGAIN, PLACEBOS, VARIANTS, A, LabConfig
from benchmarks.ab.effects import MEASURES, Effect, Prediction, alarms_in_parts, effect_of, paired_effect, prediction
from benchmarks.ab.walks import PAGE_SIZE, Outcomes, VisitOutcome, read_outcomes, walk, write_outcomes
from benchmarks.leaderboard.ranking import agent_specs
from replay_sessions.demo_shop import SESSIONS_PER_USER, ShopVariant, ShopVisit
from replay_sessions.demo_shop.realistic import CONTROL, RealisticShop
from replay_sessions.demo_shop.realistic.read import view_of
from replay_sessions.demo_shop.realistic.shop import SEARCH_INPUT
from replay_sessions.demo_shop.realistic.shopper import need_of
from replay_sessions.demo_shop.visits import write_demo_store
from replay_sessions.foundation.durable_files import replace_file
from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.records import Record
from replay_sessions.schema import Persona, Session, TypeAndSubmit
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.log import folder_name
from shop_env.evaluation.protocol import Agent
from shop_env.metrics.clustered_errors import Floats

BUYING = ("product.buy_now", "cart.checkout", "checkout.place_order")


class PurchaseModel:
    """Fitted on sessions of A."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        features = np.array([_features(session.goal, session.persona, CONTROL) for session in sessions])
        bought = np.array([getattr(session.steps[-1].action, "name", "") in BUYING for session in sessions])
        self._model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(features, bought)

    def probabilities(self, visits: int, population: int, variant: ShopVariant) -> Floats:
        """That each visit of a population buys, (visits,)."""
        features = []
        for number in range(visits):
            visit = ShopVisit(population, number, PAGE_SIZE)
            features.append(_features(visit.goal, visit.persona, variant))
        probabilities: Floats = self._model.predict_proba(np.array(features))[:, 1]
        return probabilities


def _features(goal: str | None, persona: Persona | None, variant: ShopVariant) -> list[float]:
    need, traits = need_of(goal or ""), persona.traits if persona else {}
    shop = RealisticShop(variant)
    shop.respond(TypeAndSubmit(name=SEARCH_INPUT, text=" ".join((*need.wanted, need.nouns[0]))))
    offers = view_of({"page": shop.page, "history": ()}).offers
    budget = need.budget_cents / len(need.nouns)
    prices = sorted(offer.price_cents / budget for offer in offers)
    ratings = [offer.rating for offer in offers if offer.rating is not None]
    thrifty, careful = traits.get("price") == "thrifty", traits.get("quality") == "careful"
    generous, hasty = traits.get("price") == "generous", traits.get("patience") == "hasty"
    best = max(ratings, default=0.0)
    return [
        prices[0],
        prices[len(prices) // 2],
        prices[0] * thrifty,
        prices[0] * generous,
        best,
        best * careful,
        float(np.mean([offer.badge for offer in offers])),
        float(np.mean([offer.in_stock for offer in offers])),
        variant.shipping_cents / need.budget_cents,
        float(len(need.nouns)),
        float(bool(need.wanted)),
        thrifty,
        generous,
        careful,
        hasty,
    ]


SHOPPERS, NO_EFFECT, PURCHASE_MODEL = "the shoppers", "no effect", "purchase model"
LOGS_SEED = 500_000  # the people of the logs are none of those whose visits are simulated
TRUTH_SEED = 700_000  # nor are those whose visits measure the true effects
TRAIT = "price"
USERS_IN_A_PART = 25

Effects = dict[str, dict[str, Effect]]  # by variant, then by measure or trait


class LabRow(Record):
    """One agent's predictions for all variants.

    Attributes:
        predictions: Variant -> measure -> prediction.
        by_trait: Variant -> trait -> the predicted effect on the purchase rate.
        false_alarms: Measure -> in which share of small A/A tests there was an alarm, and of how many.
        visits: To each variant; 0 for a baseline, which simulates none.
        failed: At how many visits the agent gave no reply.
    """

    label: str
    predictions: dict[str, dict[str, Prediction]]
    by_trait: Effects = {}
    false_alarms: dict[str, tuple[float, int]] = {}
    visits: int = 0
    failed: int = 0


class LabResults(Record):
    """True effects by variant and measure (by trait of the purchase rate), and each agent's row."""

    true: Effects
    true_by_trait: Effects
    rows: list[LabRow]


def run_lab(config: LabConfig) -> LabResults:
    """Walks what has not been walked yet, and compares."""
    specs = agent_specs(config.agents)
    for spec in specs:
        agent_class(spec)  # a misspelt agent is found before hours of work, not after
    labels = [spec.label for spec in specs]
    for label in config.visits_of:
        if label not in labels:
            raise BadConfig(f"--visits-of names {label!r}, which is none of the agents. {did_you_mean(label, labels)}")
    path = config.out / f"logs-{config.logs}"  # sessions of the shop as it is
    if not path.exists():
        write_demo_store(path, config.logs, LOGS_SEED, PAGE_SIZE)
    store = SessionStore.open(path)
    decided_by = {"visits": config.true_visits, "logs": store.fingerprint}  # another shop has other logs
    truth = _get_outcomes(config, SHOPPERS, lambda: OracleAgent(1.0), decided_by, [TRUTH_SEED])
    true = {name: {m: effect_of(truth[A], truth[name], m) for m in MEASURES} for name in config.changes}
    true |= {name: _without_effect(true[name]) for name in PLACEBOS if name in true}
    rows = [_row(config, spec, store, true) for spec in specs]
    return LabResults(
        true=true, true_by_trait=_by_trait(truth, config.changes), rows=rows + _baselines(config, store, true)
    )


def _row(config: LabConfig, spec: AgentSpec, store: SessionStore, true: Effects) -> LabRow:
    decided_by = {
        "target": spec.target,
        "arguments": deciding_arguments(spec) or spec.arguments,
        "code": code_digest(spec),
        "logs": store.fingerprint,
        "visits": config.visits_of.get(spec.label, config.visits),
        "max_steps": config.max_steps,
    }
    build = cache(partial(make_agent, spec, store=store))
    outcomes = _get_outcomes(config, spec.label, build, decided_by, config.seeds)
    effects = {name: {m: effect_of(outcomes[A], outcomes[name], m) for m in MEASURES} for name in config.changes}
    alarms = {}
    for measure in MEASURES if AGAIN in outcomes else ():
        if parts := list(alarms_in_parts(outcomes[A], outcomes[AGAIN], measure, USERS_IN_A_PART)):
            alarms[measure] = (float(np.mean(parts)), len(parts))
    return LabRow(
        label=spec.label,
        predictions=_predictions(effects, true),
        by_trait=_by_trait(outcomes, config.changes),
        false_alarms=alarms,
        visits=len(outcomes[A].visits),
        failed=sum(int(of_variant.failed.sum()) for of_variant in outcomes.values()),
    )


def _baselines(config: LabConfig, store: SessionStore, true: Effects) -> list[LabRow]:
    """No effect at all, and a regression of purchases: neither walks."""
    model = PurchaseModel(list(store.sessions()))
    probabilities = {
        name: np.concatenate([model.probabilities(config.visits, seed, VARIANTS[name]) for seed in config.seeds])
        for name in config.walked
    }
    shoppers = [(seed, number // SESSIONS_PER_USER) for seed in config.seeds for number in range(config.visits)]
    users = np.unique(shoppers, axis=0, return_inverse=True)[1]
    effects = {
        PURCHASE_MODEL: {
            name: {"bought": paired_effect(probabilities[A], probabilities[name], users)} for name in config.changes
        },
        NO_EFFECT: {name: _without_effect(measures) for name, measures in true.items()},
    }
    return [LabRow(label=label, predictions=_predictions(of_baseline, true)) for label, of_baseline in effects.items()]


def _predictions(effects: Effects, true: Effects) -> dict[str, dict[str, Prediction]]:
    return {
        name: {measure: prediction(effect, true[name][measure]) for measure, effect in measures.items()}
        for name, measures in effects.items()
    }


def _without_effect(measures: dict[str, Effect]) -> dict[str, Effect]:
    nothing = dict.fromkeys(("difference", "low", "high", "standard_error"), 0.0)
    return {name: msgspec.structs.replace(effect, **nothing) for name, effect in measures.items()}


def _by_trait(outcomes: dict[str, Outcomes], variants: Sequence[str]) -> Effects:
    traits = outcomes[A].traits(TRAIT)
    return {
        name: {
            str(value): effect_of(outcomes[A], outcomes[name], "bought", traits == value) for value in np.unique(traits)
        }
        for name in variants
    }


def _get_outcomes(
    config: LabConfig,
    label: str,
    build: Callable[[], Agent],
    decided_by: dict[str, Any],
    populations: Sequence[int],
) -> dict[str, Outcomes]:
    """Every variant's outcomes, those of all populations one after the other; an agent is made when it has to walk."""
    folder = config.out / "visits" / folder_name(label)
    _check_same(folder / "asked_with.json", decided_by)
    by_variant: dict[str, list[VisitOutcome]] = {}
    for variant in config.walked:
        for seed in populations:
            file = folder / f"{variant}-{seed}.jsonl"
            outcomes = read_outcomes(file)
            if outcomes is None:
                outcomes = walk(
                    build(),
                    label,
                    variant,
                    visits=decided_by["visits"],
                    population=seed,
                    seed=seed,
                    max_steps=config.max_steps,
                    batch_size=config.batch_size,
                )
                write_outcomes(file, outcomes)
            by_variant.setdefault(variant, []).extend(outcomes)
    return {variant: Outcomes(outcomes) for variant, outcomes in by_variant.items()}


def _check_same(file: Path, decided_by: dict[str, Any]) -> None:
    """Visits that were walked otherwise are no part of this call."""
    content = msgspec.json.format(msgspec.json.encode(decided_by, order="sorted")) + b"\n"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, content)
    elif (before := file.read_bytes()) != content:
        old, new = msgspec.json.decode(before), msgspec.json.decode(content)
        changes = "; ".join(f"{name}: {old.get(name)}, now {new[name]}" for name in new if old.get(name) != new[name])
        raise BadConfig(f"'{file.parent}' holds visits of other options ({changes}): give another --out.")
