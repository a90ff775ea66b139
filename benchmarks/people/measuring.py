"""The figures of each agent of a finished run, from its records, its kept probabilities and the pages of the store.

What the persona is worth to an agent: the run beside runs of the same agents that were shown other people's.

    python -m benchmarks.leaderboard --agents A --likelihood --out runs/own
    python -m benchmarks.leaderboard --agents A --likelihood --context.persona shuffled --out runs/other
    python -m benchmarks.people runs/own --shuffled runs/other

More shuffled runs, each with another `--context.persona-seed`, make it harder to be picked by chance.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import chain

import msgspec
import numpy as np

from benchmarks.leaderboard.compare import differing_settings
from benchmarks.people.tables import LogRow, PeopleRow, PersonaFigures, SkillFigures
from benchmarks.report.evidence import Evidence
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.schema import Action, Click, reply_action
from replay_sessions.store import SessionStore
from shop_env.candidates import candidate_actions
from shop_env.evaluation.comparing import adjusted, compare_records
from shop_env.evaluation.scored_steps import StepKey, scored_steps, sessions_at, steps_at
from shop_env.metrics import ActionTrace, MetricChoices, StepRecord, checked_distribution
from shop_env.metrics.action_likelihood import persona_picks
from shop_env.metrics.people import (
    KINDS,
    facts_of_sessions,
    people_figures,
    product_ranks,
    rank_click_curve,
    session_vectors,
    traces_by_user,
)
from shop_env.metrics.populations import TRACE_DISTANCES, independent_traces, scaled_distance, wasserstein
from shop_env.metrics.skill import TypeRankPrior, bits_saved, calibration_of, product_hits, sharpness, will_buy
from shop_env.metrics.step_table import FINE_TYPES, StepTable
from shop_env.metrics.two_sample import two_sample_auc
from shop_env.reward.similarity import CLICK_TYPES, click_type_of

COMPARED = ("action_mix", "transitions")  # on logged pages every session is as long as the log's
LEARNT_FROM = 300  # first sessions of the train split that the prior and the base are counted on
HITS = (1, 3, 5)
WORTH = ("exact_accuracy", "type_f1_macro", "nll")


def measure(evidence: Evidence, shuffled: Sequence[Evidence], store: SessionStore) -> tuple[LogRow, list[PeopleRow]]:
    """The log's row and each agent's, best agent first; steps without a reply are left out.

    Raises:
        BadConfig: The shuffled runs differ in more than whose persona was shown, or two of them show the same.
    """
    _check_shuffled(evidence, shuffled)
    rows = []
    with progress_bar("agents", len(evidence.labels)) as advance:
        places = _places(evidence, store)
        prior = None
        if evidence.probabilities:
            learnt = scored_steps(store, "train", context=evidence.config.context, max_sessions=LEARNT_FROM)
            prior = TypeRankPrior((candidate_actions(step.observation), step.logged) for step in learnt)
        for label in evidence.labels:
            row = _row(evidence, label, store, places)
            skill = _skill(evidence, label, store, prior) if prior and label in evidence.probabilities else None
            persona = _persona_figures(evidence, shuffled, label)
            rows.append(msgspec.structs.replace(row, skill=skill, persona=persona))
            advance(1)
    records = evidence.records[evidence.labels[0]]
    ranks = _ranks(records, places, logged=True)
    log = LogRow(
        sessions=len({record.session_id for record in records}),
        users=len(ranks),
        facts=facts_of_sessions(_by_session(records, logged=True), list(chain(*ranks.values()))),
        rank_curve=rank_click_curve(list(chain(*ranks.values()))),
    )
    return log, rows


def _row(evidence: Evidence, label: str, store: SessionStore, places: Mapping[StepKey, Mapping[str, int]]) -> PeopleRow:
    records = [record for record in evidence.records[label] if record.error is None]
    human, simulated = traces_by_user(records)
    lengths = [len(trace.kinds) for own in human.values() for trace in own]
    bases = {"uniform": independent_traces(FINE_TYPES, lengths), "train": _train_marginals(store)}
    ranks, logged_ranks = (_ranks(records, places, logged=logged) for logged in (False, True))
    at_random = [rank for own in places.values() for rank in set(own.values())]
    answered = list(chain(*ranks.values()))
    return PeopleRow(
        label=label,
        coverage=len(records) / len(evidence.records[label]),
        people=people_figures(records),
        two_sample_auc=_auc(records),
        distances={
            base: {name: scaled_distance(TRACE_DISTANCES[name], human, simulated, traces) for name in COMPARED}
            for base, traces in bases.items()
        },
        clicked_rank=scaled_distance(wasserstein, logged_ranks, ranks, at_random),
        facts=facts_of_sessions(_by_session(records, logged=False), answered),
        rank_curve=rank_click_curve(answered),
    )


def _train_marginals(store: SessionStore) -> list[ActionTrace]:
    """Sessions as long as those of the train split, each kind as likely as there; the given first actions left out."""
    of_train = [store.session(session_id) for session_id in store.session_ids("train")[:LEARNT_FROM]]
    kinds = [[_kind(step.action) for step in session.steps[1:]] for session in of_train if len(session.steps) > 1]
    return independent_traces(list(chain(*kinds)), list(map(len, kinds))) if kinds else []


def _kind(action: Action) -> str:
    if not isinstance(action, Click):
        return reply_action(action)["type"]
    return action.click_type if action.click_type in CLICK_TYPES else click_type_of(action.name)


def _places(evidence: Evidence, store: SessionStore) -> dict[StepKey, dict[str, int]]:
    """The products of each page, where there are any."""
    keys = [record.key for record in evidence.records[evidence.labels[0]]]
    return {
        (session.session_id, index): ranks
        for session, indices in sessions_at(store, evidence.config.split, keys)
        for index in indices
        if (ranks := product_ranks(session.steps[index].page))
    }


def _ranks(
    records: Sequence[StepRecord], places: Mapping[StepKey, Mapping[str, int]], *, logged: bool
) -> dict[str, list[int]]:
    """The ranks of the products that each user clicked; of all users, some with none."""
    ranks: dict[str, list[int]] = {}
    for record in records:
        own = ranks.setdefault(record.user_id, [])
        name = ((record.logged if logged else record.predicted) or {}).get("name", "")
        rank = places.get(record.key, {}).get(name)
        if rank is not None:
            own.append(rank)
    return ranks


def _by_session(records: Sequence[StepRecord], *, logged: bool) -> list[list[dict[str, str] | None]]:
    sessions: dict[str, list[dict[str, str] | None]] = {}
    for record in records:
        sessions.setdefault(record.session_id, []).append(record.logged if logged else record.predicted)
    return list(sessions.values())


def _auc(records: Sequence[StepRecord]) -> float | None:
    table = StepTable(records, MetricChoices())
    (sessions, _), (users, _) = table.clusters("session"), table.clusters("user")
    of_session = users[np.unique(sessions, return_index=True)[1]]
    human, simulated = (session_vectors(kinds, sessions, KINDS) for kinds in (table.logged_fine, table.predicted_fine))
    area = two_sample_auc(human, of_session, simulated, of_session)
    return None if np.isnan(area) else area


def _skill(evidence: Evidence, label: str, store: SessionStore, prior: TypeRankPrior) -> SkillFigures | None:
    probabilities = evidence.probabilities[label]
    records = {r.key: r for r in evidence.records[label] if r.logged_probability is not None}
    of_logged, of_prior, distributions, taken = [], [], [], []
    clicks: list[tuple[dict[str, float], str]] = []
    keys = [key for key in records if key in probabilities]
    for step in steps_at(store, evidence.config.split, keys, evidence.config.context):
        candidates, logged = candidate_actions(step.observation), tuple(reply_action(step.logged).values())
        of_logged.append(records[step.key].logged_probability or 0.0)
        of_prior.append(prior.probability(candidates, step.logged))
        # What the agent does not name it holds impossible: that is a forecast too, or naming little would pay.
        offered = [tuple(reply_action(action).values()) for action in candidates]
        held = dict.fromkeys([*offered, logged], 0.0) | checked_distribution(probabilities[step.key])
        distributions.append(np.array(list(held.values())))
        taken.append(list(held).index(logged))
        if logged[0] == "click":
            clicks.append(({key[1]: p for key, p in held.items() if key[0] == "click"}, logged[1]))
    calibration = calibration_of(distributions, taken)
    if calibration is None:
        return None
    by_name, names = [held for held, _ in clicks], [name for _, name in clicks]
    return SkillFigures(
        bits_saved=bits_saved(of_logged, of_prior),
        sharpness=sharpness(distributions, of_logged),
        calibration=calibration,
        hits={f"hit@{k}": product_hits(by_name, names, k) for k in HITS},
        will_buy=_will_buy(evidence.records[label], probabilities),
    )


def _will_buy(
    records: Sequence[StepRecord], probabilities: Mapping[StepKey, Mapping[Action, float]]
) -> list[float | None]:
    scores: dict[str, list[float]] = {}
    bought: dict[str, bool] = {}
    for record in records:
        held = probabilities.get(record.key)
        if held is not None:
            buying = (p for action, p in held.items() if click_type_of(getattr(action, "name", "")) == "purchase")
            scores.setdefault(record.session_id, []).append(sum(buying))
            bought[record.session_id] = (
                record.step_index == record.step_count - 1
                and click_type_of(record.logged.get("name", "")) == "purchase"
            )
    return will_buy(list(scores.values()), list(bought.values()))


def _check_shuffled(matched: Evidence, shuffled: Sequence[Evidence]) -> None:
    """That the runs differ in whose persona was shown, and in nothing else."""
    seeds = [other.config.context.persona_seed for other in shuffled]
    if len(set(seeds)) < len(seeds):
        raise BadConfig(f"Two of the shuffled runs have the same persona seed ({seeds}): they show the same personas.")
    for other in shuffled:
        if other.personas_shown != "shuffled" or matched.personas_shown != "matched":
            raise BadConfig(
                f"'{matched.folder}' was shown {matched.personas_shown} personas and '{other.folder}' "
                f"{other.personas_shown} ones; matched and shuffled were expected."
            )
        seed = matched.config.context.persona_seed
        context = msgspec.structs.replace(other.config.context, persona="matched", persona_seed=seed)
        config = msgspec.structs.replace(other.config, context=context)
        if differing := differing_settings(matched.log, msgspec.structs.replace(other.log, config=config)):
            raise BadConfig(
                f"'{matched.folder}' and '{other.folder}' differ in more than the persona: {', '.join(differing)}."
            )


def _persona_figures(matched: Evidence, shuffled: Sequence[Evidence], label: str) -> PersonaFigures | None:
    """How often an agent's sessions are likeliest as their own person, and matched less shuffled; None if not run."""
    others = [other.records[label] for other in shuffled if label in other.records]
    if not others:
        return None
    own, preset = matched.records[label], matched.config.metrics
    records = {"own": own, "another's": others[0]}
    compared = [compare_records(records, "own", "another's", metric, preset=preset) for metric in WORTH]
    return PersonaFigures(
        picks=persona_picks(own, others),
        worth={test.metric: test for test in adjusted(compared) if not math.isnan(test.difference)},
    )
