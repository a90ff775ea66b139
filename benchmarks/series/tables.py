"""The tables of a series in words and figures: for terminals and for Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from benchmarks.leaderboard.ranking import LeaderboardConfig
from benchmarks.series.pooled import SeriesTable
from replay_sessions.foundation.table import Cell, Column, Table
from shop_env.evaluation.pooling import Pooled
from shop_env.evaluation.results import METRIC_COLUMNS, interval_notes, metric_cell

ESSENTIAL = ("exact_accuracy", "type_accuracy", "type_f1_macro", "nll")


def title(table: SeriesTable) -> str:
    """The store, and what of the settings is not a leaderboard's default."""
    settings = dict(_flat(msgspec.json.decode(table.settings)))
    default = dict(_flat(msgspec.to_builtins(LeaderboardConfig(agents=(), out=""))))
    changed = [f"{name} {value}" for name, value in settings.items() if name != "split" and value != default[name]]
    return ", ".join([f"store {table.store}", f"split {settings['split']}", *changed])


def series_table(table: SeriesTable) -> Table:
    """The rows: metrics that a row has, then what they rest on; those that say less fold away on a narrow terminal."""
    names = [name for name in METRIC_COLUMNS if any(name in row.figures for row in table.rows)]
    columns = [msgspec.structs.replace(METRIC_COLUMNS[name], optional=name not in ESSENTIAL) for name in names]
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
    """The differences, and where the variance comes from."""
    yield from (difference.sentence() for difference in table.differences)
    for row in table.rows:
        if row.exact_variance is not None:
            parts = row.exact_variance
            deviations = (f"{100 * part**0.5:.1f}" for part in (parts.users, parts.seeds, parts.draws))
            yield "{}: deviation of exact accuracy, in points, by users {}, seeds {}, draws {}.".format(
                row.label, *deviations
            )


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
