"""The tables of a series in words and figures: for terminals and for Markdown."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from agents.pooled_figures import Pooled
from agents.results import ALL_COLUMNS, IN_NATS, IN_POINTS, WITH_INTERVAL
from benchmarks.leaderboard.config import LeaderboardConfig
from benchmarks.series.pooled import SeriesRow, SeriesTable

__all__ = ["cells", "headings", "markdown", "sentences", "title"]

MISSING = "–"
STANDS_ON = "seeds × draws × steps"
BRIEF = ("exact_accuracy", "type_accuracy", "type_f1_macro", "nll")
COMPARED = {"exact_accuracy": "exact accuracy", "type_f1_macro": "macro-F1"}


def title(table: SeriesTable) -> str:
    """The store, and what of the settings is not a leaderboard's default."""
    given = dict(_flat(msgspec.json.decode(table.settings)))
    default = dict(_flat(LeaderboardConfig(agents=(), out="").as_json()))
    changed = [f"{name} {value}" for name, value in given.items() if name != "split" and value != default[name]]
    return ", ".join([f"store {table.store}", f"split {given['split']}", *changed])


def headings(table: SeriesTable, *, brief: bool = False) -> list[str]:
    """Of the columns: figures that a row has, then what they stand on; `brief` leaves out those that tell less."""
    return ["agent", *(ALL_COLUMNS[name] for name in _shown(table, brief)), STANDS_ON]


def cells(row: SeriesRow, table: SeriesTable, *, brief: bool = False) -> list[str]:
    """One row, a cell for each heading."""
    label = row.label if row.figures else f"{row.label} (not ranked: no reply {row.errors} times)"
    figures = [_figure(name, row.figures.get(name)) for name in _shown(table, brief)]
    return [label, *figures, f"{row.seeds} × {row.draws} × {row.steps}"]


def sentences(table: SeriesTable) -> Iterator[str]:
    """The differences that were asked for, and where the variance comes from."""
    for one in table.differences:
        difference = one.pooled
        told = "the interval holds 0" if not difference.sign else "they differ"
        seeds = f", by seed {', '.join(_points(value) for value in difference.by_seed)}"
        yield (
            f"{one.first} − {one.second}, {COMPARED[one.metric]}: {_points(difference.value)} points"
            f"{_ends(difference, _points)}{seeds if len(difference.by_seed) > 1 else ''}: {told}."
        )
    for row in table.rows:
        if row.exact_variance is not None:
            parts = row.exact_variance
            shown = (f"{100 * part**0.5:.1f}" for part in (parts.users, parts.seeds, parts.draws))
            yield "{}: deviation of exact accuracy, in points, by users {}, seeds {}, draws {}.".format(
                row.label, *shown
            )


def markdown(tables: Sequence[SeriesTable]) -> str:
    """All tables, each with its heading and sentences."""
    return "\n".join(_markdown(table) for table in tables)


def _markdown(table: SeriesTable) -> str:
    names = headings(table)
    lines = [f"## {title(table)}\n", "| " + " | ".join(names) + " |", "|---" + "|--:" * (len(names) - 1) + "|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells(row, table)) + " |" for row in table.rows]
    lines.append(
        "\nPercent, reward in points, NLL in nats: means over seeds and draws, with 95% intervals over users (CR2) and "
        "seeds.\n"
    )
    return "\n".join([*lines, *(f"- {sentence}" for sentence in sentences(table))]) + "\n"


def _shown(table: SeriesTable, brief: bool) -> list[str]:
    names = BRIEF if brief else tuple(ALL_COLUMNS)
    return [name for name in names if any(name in row.figures for row in table.rows)]


def _figure(name: str, pooled: Pooled | None) -> str:
    if pooled is None:
        return MISSING
    form = "{:.2f}" if name in IN_NATS else "{:.1f}"
    scale = 1 if name in (*IN_NATS, *IN_POINTS) else 100
    shown = form.format(scale * pooled.value)
    if name in (*WITH_INTERVAL, *IN_NATS):
        shown += _ends(pooled, lambda value: form.format(scale * value))
    return shown


def _ends(pooled: Pooled, show: Callable[[float], str]) -> str:
    return "" if pooled.low is None or pooled.high is None else f" [{show(pooled.low)}, {show(pooled.high)}]"


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
