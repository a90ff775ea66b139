"""The tables of a series: every agent's figures over all its seeds and draws, and the differences of pairs.

    boards ─► records by row, seed and draw ─► a seed's draws put together ─► pooled over seeds ─► SeriesTable

A seed's draws are further steps of the same users, so the error over users (CR2) holds what the draws vary. An agent
that is the same for all seeds stands beside each of them.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from benchmarks.series.config import Board, TableKey
from shop_env.evaluation.comparing import Comparison, adjusted
from shop_env.evaluation.log import read_log, read_records
from shop_env.evaluation.pooling import Measured, Pooled
from shop_env.evaluation.results import COLUMNS, LIKELIHOOD_COLUMNS
from shop_env.metrics import StepRecord, metric_preset
from shop_env.metrics.all_metrics import find_metric
from shop_env.metrics.intervals import metric_error, user_sums
from shop_env.metrics.statistics import ClusteredError, VarianceParts, variance_parts
from shop_env.metrics.step_table import StepTable

SHOWN = (*COLUMNS, *LIKELIHOOD_COLUMNS)
COMPARED = ("exact_accuracy", "type_f1_macro")

OfDraws = dict[int, list[StepRecord]]
OfSeeds = dict[int | None, OfDraws]


class SeriesRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in a table.

    Attributes:
        figures: By metric; empty where it gave no reply at some steps, for then it is not ranked.
        seeds: Of its training; 1 where it has none.
        draws: Of each seed.
        steps: Of one draw of one seed.
        errors: At how many of all steps it gave no reply.
        exact_variance: Where the variance of its exact accuracy comes from; needs two seeds with two draws each.
    """

    label: str
    figures: dict[str, Pooled]
    seeds: int
    draws: int
    steps: int
    errors: int
    exact_variance: VarianceParts | None = None


class SeriesTable(msgspec.Struct, frozen=True, kw_only=True):
    """What may be compared: one store under the same settings."""

    store: str
    settings: str
    rows: list[SeriesRow]
    differences: list[Comparison]


def tables_of(boards: Sequence[Board], compare: Iterable[tuple[str, str]]) -> list[SeriesTable]:
    """Every table, its rows best first, from the records of finished boards."""
    tables: dict[TableKey, dict[str, OfSeeds]] = {}
    stores: dict[TableKey, set[str]] = {}
    for board in boards:
        log = read_log(board.config.folder)
        for place in board.places:
            records = read_records(board.config.folder, log.entry(place.entry))
            of_seeds = tables.setdefault(place.table, {}).setdefault(place.label, {})
            of_seeds.setdefault(place.seed, {})[place.draw] = records
            stores.setdefault(place.table, set()).add(board.config.store)
    return [_table(key, rows, compare, same_users=len(stores[key]) == 1) for key, rows in tables.items()]


def _table(
    key: TableKey, records: Mapping[str, OfSeeds], compare: Iterable[tuple[str, str]], *, same_users: bool
) -> SeriesTable:
    preset = msgspec.json.decode(key.settings)["metrics"]
    rows = [_row(label, of_seeds, preset, same_users) for label, of_seeds in records.items()]
    ranked = {row.label for row in rows if row.figures}
    pairs = [pair for pair in compare if ranked.issuperset(pair)]
    return SeriesTable(
        store=key.store,
        settings=key.settings,
        rows=sorted(rows, key=lambda row: -row.figures["exact_accuracy"].value if row.figures else 1.0),
        differences=[
            difference
            for first, second in pairs
            for difference in adjusted(list(_differences(first, second, records, preset, same_users)))
        ],
    )


def _row(label: str, of_seeds: OfSeeds, preset: str, same_users: bool) -> SeriesRow:
    draws = [records for of_draws in of_seeds.values() for records in of_draws.values()]
    errors = sum(record.error is not None for records in draws for record in records)
    return SeriesRow(
        label=label,
        figures={} if errors else _figures(label, of_seeds, preset, same_users),
        seeds=len(of_seeds),
        draws=max(map(len, of_seeds.values())),
        steps=len(draws[0]),
        errors=errors,
        exact_variance=None if errors else _exact_variance(of_seeds, preset),
    )


def _figures(label: str, of_seeds: OfSeeds, preset: str, same_users: bool) -> dict[str, Pooled]:
    seeds = [{label: _together(of_draws.values())} for of_draws in of_seeds.values()]
    measured = Measured(seeds, same_users=same_users, preset=preset)
    figures = {name: measured.figure(label, name) for name in SHOWN}
    return {name: pooled for name, pooled in figures.items() if pooled is not None}


def _differences(
    first: str, second: str, records: Mapping[str, OfSeeds], preset: str, same_users: bool
) -> Iterable[Comparison]:
    """On the seeds and draws that both have; an agent that is the same for all seeds has every one."""
    seeds = []
    for seed in dict.fromkeys([*records[first], *records[second]]):
        ours, theirs = (
            of_seeds.get(seed) or of_seeds.get(None) or {} for of_seeds in (records[first], records[second])
        )
        draws = sorted(ours.keys() & theirs.keys())
        if draws and (seed is not None or len(records[first]) == len(records[second]) == 1):
            seeds.append({first: _together(ours[n] for n in draws), second: _together(theirs[n] for n in draws)})
    if not seeds:
        return
    measured = Measured(seeds, same_users=same_users, preset=preset)
    for metric in COMPARED:
        pooled = measured.difference(first, second, metric)
        if pooled is not None:
            yield Comparison(
                first=first,
                second=second,
                metric=metric,
                difference=pooled.value,
                low=pooled.low,
                high=pooled.high,
                p_value=pooled.p_value,
                by_seed=tuple(pooled.by_seed),
                clusters=measured.tested().users,
                steps=measured.tested().steps,
            )


def _exact_variance(of_seeds: OfSeeds, preset: str) -> VarianceParts | None:
    draws = [[_exact(records, preset) for records in of_draws.values()] for of_draws in of_seeds.values()]
    if len(draws) < 2 or len(draws[0]) < 2 or len({len(of_draws) for of_draws in draws}) > 1:
        return None
    errors = [error for of_draws in draws for _, error in of_draws if error is not None]
    return variance_parts([[value for value, _ in of_draws] for of_draws in draws], errors) if errors else None


def _exact(records: Sequence[StepRecord], preset: str) -> tuple[float, ClusteredError | None]:
    """One draw's exact accuracy and its error over users."""
    choices = metric_preset(preset)
    table, metric = StepTable(records, choices), find_metric("exact_accuracy", choices)
    sums = user_sums(metric, table)
    return float(metric.value(sums.sum(axis=0))), metric_error(metric, sums)


def _together(draws: Iterable[Sequence[StepRecord]]) -> list[StepRecord]:
    """The records of a seed's draws as those of one longer run of the same users."""
    drawn = list(draws)
    if len(drawn) == 1:
        return list(drawn[0])
    return [
        msgspec.structs.replace(record, session_id=f"{record.session_id}, draw {number}")
        for number, records in enumerate(drawn)
        for record in records
    ]
