"""The tables of a series: every agent's figures over all its seeds and draws, and the differences of pairs.

    boards ─► records by row, seed and draw ─► a seed's draws put together ─► pooled over seeds ─► SeriesTable
        ─► series_table, sentences (terminal), markdown

A seed's draws are further steps of the same users, so the error over users (CR2) holds what the draws vary. An agent
that is the same for all seeds stands beside each of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from benchmarks.leaderboard.ranking import LeaderboardConfig
from benchmarks.series.config import Board, TableKey
from replay_sessions.foundation.table import Cell, Column, Table
from shop_env.evaluation.comparing import Comparison, Measured, Pooled, adjusted
from shop_env.evaluation.log import read_log, read_records
from shop_env.evaluation.results import COLUMNS, LIKELIHOOD_COLUMNS, METRIC_COLUMNS, interval_notes, metric_cell
from shop_env.metrics import StepRecord

SHOWN = (*COLUMNS, *LIKELIHOOD_COLUMNS)
COMPARED = ("exact_accuracy", "type_f1_macro")

OfDraws = dict[int, list[StepRecord]]
OfSeeds = dict[int | None, OfDraws]


class SeriesRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in a table.

    Attributes:
        figures: By metric; empty where it is not ranked.
        seeds: Of its training; 1 where it has none.
        draws: Of each seed.
        steps: Of one draw of one seed.
        errors: At how many of all steps it gave no reply.
    """

    label: str
    figures: dict[str, Pooled]
    seeds: int
    draws: int
    steps: int
    errors: int


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
            entry = log.entry(place.entry)
            records = read_records(board.config.folder, log, entry)
            of_seeds = tables.setdefault(place.table, {}).setdefault(place.label, {})
            of_seeds.setdefault(place.seed, {})[place.draw] = records
            stores.setdefault(place.table, set()).add(board.config.store)
    return [_table(key, rows, compare, same_users=len(stores[key]) == 1) for key, rows in tables.items()]


def _table(
    key: TableKey,
    records: Mapping[str, OfSeeds],
    compare: Iterable[tuple[str, str]],
    *,
    same_users: bool,
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


def title(table: SeriesTable) -> str:
    """The store, and what of the settings is not a leaderboard's default."""
    settings = dict(_flat(msgspec.json.decode(table.settings)))
    default = dict(_flat(msgspec.json.decode(msgspec.json.encode(LeaderboardConfig(agents=(), out="")))))
    changed = [f"{name} {value}" for name, value in settings.items() if name != "split" and value != default[name]]
    return ", ".join([f"store {table.store}", f"split {settings['split']}", *changed])


def series_table(table: SeriesTable) -> Table:
    """The rows: metrics that a row has, then what they rest on."""
    names = [name for name in METRIC_COLUMNS if any(name in row.figures for row in table.rows)]
    columns = [METRIC_COLUMNS[name] for name in names]
    return Table(
        title=title(table),
        columns=[Column("agent"), *columns, Column("seeds × draws × steps", "count")],
        rows=[
            [
                row.label if row.figures else f"{row.label} (not ranked: no reply {row.errors} times)",
                *(_cell(name, row.figures.get(name)) for name in names),
                f"{row.seeds} × {row.draws} × {row.steps}",
            ]
            for row in table.rows
        ],
        notes=[
            "Percent, reward in points, NLL in nats: means over seeds and draws, with 95% intervals over users (CR2) "
            "and seeds.",
            *interval_notes(row.figures.get("exact_accuracy") for row in table.rows),
        ],
    )


def _cell(name: str, pooled: Pooled | None) -> Cell:
    return pooled if name == "nll" else metric_cell(name, pooled)


def sentences(table: SeriesTable) -> Iterator[str]:
    """The differences."""
    yield from (difference.sentence() for difference in table.differences)


def markdown(tables: Sequence[SeriesTable]) -> str:
    """All tables, each with its heading and sentences."""
    return "\n".join(
        "\n".join([f"## {title(table)}\n", series_table(table).markdown(), *(f"- {line}" for line in sentences(table))])
        + "\n"
        for table in tables
    )


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
