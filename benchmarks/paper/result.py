"""A table's result: our figures beside the published ones, and what the order of rows says.

records of all seeds ─► Measured ─► View (sampled), View (greedy) ─► TableResult ─► written.py
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agents.llm_grpo.row_names import Decoding, decodings
from agents.pooled_figures import Measured, Pooled, Tested
from benchmarks.paper.differing import Aspect, aspects
from benchmarks.paper.orders import Order, further_differences, orders
from benchmarks.paper.published import PaperRow, PaperTable
from benchmarks.paper.training import Asked, SeedRun, read_records
from benchmarks.paper.type_shares import PREDICTED_KINDS, TYPE_SHARES
from replay_sessions.provenance import provenance
from shop_env.metrics import StepRecord
from shop_env.versions import METRICS_VERSION, SCORING_VERSION

__all__ = ["TableResult", "TableRow", "View", "table_result"]

ORACLE = "oracle"


class TableRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row.

    Attributes:
        figures: In the order of the columns; None where no step stands for one.
        published: For each model of the paper the same; nothing where the paper has no such row.
        predicted: How often each type of action is predicted; `other` is a reply that cannot be read.
        trained: Whether it is a policy of the table's, not a floor or a ceiling.
    """

    label: str
    figures: list[Pooled | None]
    published: dict[str, list[float | None]] = {}
    predicted: dict[str, Pooled | None] = {}
    trained: bool = True


class View(msgspec.Struct, frozen=True, kw_only=True):
    """All rows, decoded one way.

    Attributes:
        orders: Of the rows that the paper has.
        further: What else is compared.
    """

    decoding: str
    rows: list[TableRow]
    orders: list[Order]
    further: list[Order]


class TableResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is written of a table; shares are shares.

    Attributes:
        columns: Their headings.
        models: The paper's, by which `published` figures are named.
        phases, cost, runs: By run: what each phase took, wall time and memory, run.json without the configuration.
        provenance: Of the table, with the configuration of the first run.
    """

    table: str
    title: str
    preset: str
    seeds: list[int]
    columns: list[str]
    models: list[str]
    metrics: str
    aspects: list[Aspect]
    notes: list[str]
    tested: Tested
    views: list[View]
    phases: dict[str, dict[str, Any]]
    cost: dict[str, Any]
    versions: dict[str, int]
    runs: dict[str, Any]
    provenance: dict[str, Any]


def table_result(
    name: str, table: PaperTable, runs: Mapping[str | None, Sequence[SeedRun]], asked: Asked
) -> TableResult:
    """The result of finished runs."""
    first = next(iter(runs.values()))
    every = [run for of_variant in runs.values() for run in of_variant]
    preset = table.source().metrics
    same_users = len({run.provenance()["store"]["fingerprint"] for run in every}) == 1
    measured: dict[str, Measured] = {}
    for decoding in _decodings(table, first[0]):
        records = [
            _records(table, runs, seed, decoding, floors=not (table.by_kind or table.drawn_by_temperature))
            for seed in range(len(first))
        ]
        measured[decoding.name] = Measured(records, same_users=same_users, preset=preset, further=TYPE_SHARES)
    tested = next(iter(measured.values())).tested()
    config = msgspec.structs.replace(first[0].config, store=Path(first[0].config.store).name)  # wherever it lies
    return TableResult(
        table=name,
        title=table.title,
        preset=asked.preset,
        seeds=list(asked.seeds),
        columns=[column.heading for column in table.columns],
        models=table.models,
        metrics=preset,
        aspects=aspects(table, first, tested, same_users=same_users),
        notes=[*table.notes, *_further_notes(runs)],
        tested=tested,
        views=[_view(table, decoding, found) for decoding, found in measured.items()],
        phases={_named(run): run.finished() for run in every},
        cost={_named(run): run.cost() for run in every},
        versions={"scoring": SCORING_VERSION, "metrics": METRICS_VERSION},
        runs={_named(run): run.provenance() for run in every},
        provenance=provenance(msgspec.to_builtins(config)),
    )


def _decodings(table: PaperTable, run: SeedRun) -> list[Decoding]:
    """Sampled and, where the preset has it, greedy; rows with temperatures of their own make one view."""
    both = decodings(run.config.evaluation)
    return both[:1] if table.drawn_by_temperature else both


def _records(
    table: PaperTable,
    runs: Mapping[str | None, Sequence[SeedRun]],
    seed: int,
    decoding: Decoding,
    *,
    floors: bool,
) -> dict[str, list[StepRecord]]:
    found = {row.label: read_records(runs[row.variant][seed], _file_name(row, decoding)) for row in table.rows}
    if floors:
        run = next(iter(runs.values()))[seed]
        found |= {label: read_records(run, name) for label, name in _floors(run, decoding).items()}
    return found


def _file_name(row: PaperRow, decoding: Decoding) -> str:
    if row.temperature is not None:
        own = Decoding("greedy", 0.0) if row.temperature == 0 else Decoding(f"T {row.temperature:g}", row.temperature)
        return own.file_name(row.phase)
    return decoding.file_name(row.phase)


def _floors(run: SeedRun, decoding: Decoding) -> dict[str, str]:
    """What stands beside the policies: agents that learn nothing, and the shoppers' own policy where it is known."""
    oracle = decoding.file_name(ORACLE)
    known = {ORACLE: oracle} if run.file(oracle).exists() else {}
    return run.agents() | known


def _view(table: PaperTable, decoding: str, measured: Measured) -> View:
    rows = [
        TableRow(
            label=row.label,
            figures=[
                measured.figure(row.label, name, ends=(-1.0 if column.signed else 0.0, 1.0))
                for name, column in zip(row.metrics(table.columns), table.columns, strict=True)
            ],
            published={model: row.published_shares(model) for model in row.published},
            predicted={} if table.by_kind else _predicted(measured, row.label),
        )
        for row in table.rows
        if row.label in measured.rows
    ]
    beside = measured.rows - {row.label for row in rows}
    for label in sorted(beside, key=lambda label: (label == ORACLE, label)):
        figures = [measured.figure(label, column.metric) for column in table.columns]
        rows.append(TableRow(label=label, figures=figures, predicted=_predicted(measured, label), trained=False))
    return View(
        decoding="by row" if table.drawn_by_temperature else decoding,
        rows=rows,
        orders=orders(table, measured),
        further=further_differences(table, measured),
    )


def _predicted(measured: Measured, label: str) -> dict[str, Pooled | None]:
    return {kind: measured.figure(label, f"predicted_share_{kind}") for kind in PREDICTED_KINDS}


def _further_notes(runs: Mapping[str | None, Sequence[SeedRun]]) -> list[str]:
    notes = [f"{variant.replace('_', ' ')}: {' '.join(found[0].flags)}." for variant, found in runs.items() if variant]
    first = next(iter(runs.values()))
    if first[0].config.model.path is None:
        notes.append(
            "The model is made from nothing: without SFT, prompted or trained by RL alone, it knows no language."
        )
    notes.append(
        "The paper gives no intervals: the order of two near figures there may be chance. Of 20 pairs here that do not "
        "differ, one is told apart by chance."
    )
    if len(first) == 1:
        notes.append("One seed: the intervals are over people alone, and another seed trains another policy.")
    return notes


def _named(run: SeedRun) -> str:
    return f"{run.folder.parent.name}/{run.folder.name}"
