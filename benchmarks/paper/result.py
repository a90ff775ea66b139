"""A table's result: our figures beside the published ones, and what the order of rows says.

records of all seeds ─► Measured ─► View (sampled), View (greedy) ─► TableResult ─► written.py

How often each type of action is logged, predicted, and the one more than the other (Customer-R1, table 7).

| name | formula | range |
|---|---|---|
| `logged_share_<type>` | share of steps at which it is logged | 0–1 |
| `predicted_share_<type>` | share of steps at which it is predicted | 0–1 |
| `predicted_less_logged_<type>` | the second less the first | -1–1 |

`other` is what is no action: never logged, predicted where a reply cannot be read; so `type_accuracy_other` has no step
to stand on.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from agents.llm_grpo.config import Decoding
from benchmarks.paper.orders import Order, find_orders, further_differences
from benchmarks.paper.published import PaperRow, PaperTable
from benchmarks.paper.runs import Aspect, PaperOptions, Runs, aspects
from benchmarks.training_runs import PlannedRun
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.records import Record
from shop_env.evaluation.comparing import Measured, Pooled, Tested
from shop_env.metrics import StepRecord
from shop_env.metrics.metric import Metric, equal, share
from shop_env.metrics.step_table import ACTION_TYPES, INVALID
from shop_env.versions import METRICS_VERSION, SCORING_VERSION

ORACLE = "oracle"


def _of_type(code: int, kind: str) -> dict[str, Metric]:
    return {
        f"logged_share_{kind}": share(lambda table: equal(table.logged_type, code)),
        f"predicted_share_{kind}": share(lambda table: equal(table.predicted_type, code)),
        f"predicted_less_logged_{kind}": share(
            lambda table: equal(table.predicted_type, code) - equal(table.logged_type, code), (-1.0, 1.0)
        ),
    }


_KINDS = {**dict(enumerate(ACTION_TYPES)), INVALID: "other"}
PREDICTED_KINDS = tuple(_KINDS.values())
TYPE_SHARES: Mapping[str, Metric] = {
    name: metric for code, kind in _KINDS.items() for name, metric in _of_type(code, kind).items()
} | {"type_accuracy_other": share(lambda table: np.full(len(table), np.nan))}


class TableRow(Record):
    """A row.

    Attributes:
        figures: In the order of the columns; None where no step stands for one.
        published: For each model of the paper the same; empty where the paper has no such row.
        predicted: How often each type of action is predicted; `other` is a reply that cannot be read.
        trained: Whether it is a policy of the table, not a baseline or a ceiling.
    """

    label: str
    figures: list[Pooled | None]
    published: dict[str, list[float | None]] = {}
    predicted: dict[str, Pooled | None] = {}
    trained: bool = True

    def share(self, model: str, index: int) -> float | None:
        """The published figure of a model in a column; None where the paper has none."""
        return self.published[model][index] if model in self.published else None


class View(Record):
    """All rows, decoded one way.

    Attributes:
        orders: Of the rows that the paper has.
        further: What else is compared.
    """

    decoding: str
    rows: list[TableRow]
    orders: list[Order]
    further: list[Order]


class TableResult(Record):
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


def table_result(table: PaperTable, runs: Runs, options: PaperOptions) -> TableResult:
    """The result of finished runs."""
    first = next(iter(runs.values()))
    every = [run for of_variant in runs.values() for run in of_variant]
    preset = table.source().metrics
    same_users = len({run.provenance()["store"]["fingerprint"] for run in every}) == 1
    measured: dict[str, Measured] = {}
    # Sampled and, where the preset has it, greedy; rows with temperatures of their own make one view.
    for decoding in first[0].config.evaluation.decodings[: 1 if table.drawn_by_temperature else None]:
        records = [_records(table, runs, index, decoding) for index in range(len(first))]
        measured[decoding.name] = Measured(records, same_users=same_users, preset=preset, further=TYPE_SHARES)
    tested = next(iter(measured.values())).tested()
    config = msgspec.structs.replace(first[0].config, store=Path(first[0].config.store).name)  # wherever it lies
    return TableResult(
        table=options.table,
        title=table.title,
        preset=options.preset,
        seeds=[run.seed for run in first],
        columns=[column.heading for column in table.columns],
        models=table.models,
        metrics=preset,
        aspects=aspects(table, first, tested, same_users=same_users),
        notes=[*table.notes, *_further_notes(runs)],
        tested=tested,
        views=[_view(table, decoding, of_decoding) for decoding, of_decoding in measured.items()],
        phases={_named(run): run.finished_phases() for run in every},
        cost={_named(run): run.read_json("cost.json") for run in every},
        versions={"scoring": SCORING_VERSION, "metrics": METRICS_VERSION},
        runs={_named(run): run.provenance() for run in every},
        provenance=provenance(msgspec.to_builtins(config)),
    )


def _records(table: PaperTable, runs: Runs, seed: int, decoding: Decoding) -> dict[str, list[StepRecord]]:
    """Of one seed: the table's rows, and beside them agents that learn nothing and, where it is known, the oracle."""
    records = {row.label: runs[row.variant][seed].read_records(_file_name(row, decoding)) for row in table.rows}
    if not (table.by_kind or table.drawn_by_temperature):
        run = next(iter(runs.values()))[seed]
        references = {label: label for label in run.agents}
        oracle = decoding.file_name(ORACLE)
        if run.records_file(oracle).exists():
            references[ORACLE] = oracle
        records |= {label: run.read_records(name) for label, name in references.items()}
    return records


def _file_name(row: PaperRow, decoding: Decoding) -> str:
    if row.temperature is not None:
        name = f"T {row.temperature:g}" if row.temperature else "greedy"
        decoding = Decoding(name, row.temperature)
    return decoding.file_name(row.phase)


def _view(table: PaperTable, decoding: str, measured: Measured) -> View:
    rows = [
        TableRow(
            label=row.label,
            figures=[measured.figure(row.label, name) for name in row.metrics(table.columns)],
            published={
                model: [row.share(model, index) for index in range(len(table.columns))] for model in row.published
            },
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
        orders=find_orders(table, measured),
        further=further_differences(table, measured),
    )


def _predicted(measured: Measured, label: str) -> dict[str, Pooled | None]:
    return {kind: measured.figure(label, f"predicted_share_{kind}") for kind in PREDICTED_KINDS}


def _further_notes(runs: Runs) -> list[str]:
    notes = [f"{variant.replace('_', ' ')}: {' '.join(seeds[0].flags)}." for variant, seeds in runs.items() if variant]
    first = next(iter(runs.values()))
    if first[0].config.model.path is None:
        notes.append(
            "The model is trained from scratch: without SFT, prompted or trained by RL alone, it knows no language."
        )
    notes.append(
        "The paper gives no intervals: the order of two near figures there may be chance. Of 20 pairs here that do not "
        "differ, one is significantly different by chance."
    )
    if len(first) == 1:
        notes.append("One seed: the intervals are over users alone, and another seed trains another policy.")
    return notes


def _named(run: PlannedRun) -> str:
    return f"{run.folder.parent.name}/{run.folder.name}"
