"""Runs the A/B lab: writes logs of A, makes agents from them, simulates visits, computes effects and predictions.

logs of A ─► make_agent(store=…) ─► visits to A and each variant ─┐
the known shoppers ─► more visits to A and each variant ──────────┴─► true and predicted effects ─► LabRow
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from hashlib import blake2b
from typing import Any

import msgspec

from agents.agent_identity import reply_identity
from agents.baselines.rules import OracleAgent
from agents.registry import agent_class, make_agent
from benchmarks.ab.config import PLACEBOS, A, LabConfig
from benchmarks.ab.effects import MEASURES, Effect, Prediction, effect_of, prediction
from benchmarks.ab.walks import PAGE_SIZE, Outcomes, VisitOutcome, walk
from benchmarks.leaderboard.ranking import agent_specs
from replay_sessions.demo_shop.visits import write_demo_store
from replay_sessions.foundation.durable_files import replace_file
from replay_sessions.foundation.records import Record
from replay_sessions.store import SessionStore
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.results_file import folder_name
from shop_env.evaluation.waves import AgentSpec
from shop_env.live import VISIT_CONTEXT

SHOPPERS, NO_EFFECT = "the shoppers", "no effect"
LOGS_SEED = 500_000  # so that the users of the logs are not the users of the simulated visits
TRUTH_SEED = 700_000  # so that the users who measure the true effect are in neither of these

Effects = dict[str, dict[str, Effect]]  # by variant, then by measure


class LabRow(Record):
    """One agent's predictions for all variants.

    Attributes:
        predictions: Predictions by variant, then by measure.
        visits: Number of visits to each variant; 0 for the row "no effect", which simulates none.
    """

    label: str
    predictions: dict[str, dict[str, Prediction]]
    visits: int = 0


class LabResults(Record):
    """The true effects by variant and measure, and each agent's row."""

    true: Effects
    rows: list[LabRow]


def run_lab(config: LabConfig) -> LabResults:
    """Simulates the visits that are missing in `config.out` and compares predicted with true effects."""
    specs = agent_specs(config.agents)
    for spec in specs:
        agent_class(spec)  # reports a misspelt agent before hours of work
    path = config.out / f"logs-{config.utility}-{config.logs}"  # sessions of the shop as it is
    if not path.exists():
        write_demo_store(path, config.logs, LOGS_SEED, PAGE_SIZE, config.utility)
    store = SessionStore.open(path)
    logs = {"logs": store.fingerprint}  # another shop has other logs
    true = _effects(
        _walk_all(
            config, SHOPPERS, lambda: OracleAgent(1.0, utility=config.utility), config.true_visits, logs, [TRUTH_SEED]
        )
    )
    true |= {name: _without_effect(true[name]) for name in PLACEBOS if name in true}
    zero_effects = {name: _without_effect(measures) for name, measures in true.items()}
    rows = [_row(config, spec, store, true) for spec in specs]
    return LabResults(true=true, rows=[*rows, LabRow(label=NO_EFFECT, predictions=_predictions(zero_effects, true))])


def _row(config: LabConfig, spec: AgentSpec, store: SessionStore, true: Effects) -> LabRow:
    build = cache(partial(make_agent, spec, store=store, context=VISIT_CONTEXT))
    outcomes = _walk_all(
        config, spec.label, build, config.visits, reply_identity(spec, VISIT_CONTEXT, store, 0), config.seeds
    )
    return LabRow(
        label=spec.label,
        predictions=_predictions(_effects(outcomes), true),
        visits=len(outcomes[A].visits),
    )


def _effects(outcomes: dict[str, Outcomes]) -> Effects:
    return {
        name: {measure: effect_of(outcomes[A], of_variant, measure) for measure in MEASURES}
        for name, of_variant in outcomes.items()
        if name != A
    }


def _predictions(effects: Effects, true: Effects) -> dict[str, dict[str, Prediction]]:
    return {
        name: {measure: prediction(effect, true[name][measure]) for measure, effect in measures.items()}
        for name, measures in effects.items()
    }


def _without_effect(measures: dict[str, Effect]) -> dict[str, Effect]:
    zeros = dict.fromkeys(("difference", "low", "high", "standard_error"), 0.0)
    return {name: msgspec.structs.replace(effect, **zeros) for name, effect in measures.items()}


def _walk_all(
    config: LabConfig,
    label: str,
    build: Callable[[], Agent],
    visits: int,
    decided_by: dict[str, Any],
    populations: Sequence[int],
) -> dict[str, Outcomes]:
    """Returns the outcomes of every variant, population after population; `build` is called only if visits are missing.

    Visits with other options, or by an agent that was edited since, are in another folder.
    """
    content = msgspec.json.encode({**decided_by, "visits": visits, "max_steps": config.max_steps}, order="sorted")
    folder = config.out / "visits" / f"{folder_name(label)}-{blake2b(content, digest_size=4).hexdigest()}"
    decoder = msgspec.json.Decoder(VisitOutcome)
    by_variant: dict[str, list[VisitOutcome]] = {}
    for variant in (A, *config.changes):
        for population in populations:
            file = folder / f"{variant}-{population}.jsonl"
            if not file.exists():
                sizes = {"visits": visits, "population": population, "max_steps": config.max_steps}
                replace_file(file, msgspec.json.Encoder().encode_lines(walk(build(), label, variant, **sizes)))
            by_variant.setdefault(variant, []).extend(decoder.decode_lines(file.read_bytes()))
    return {variant: Outcomes(outcomes) for variant, outcomes in by_variant.items()}
