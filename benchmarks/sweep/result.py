"""Computes a sweep's result: the values over all seeds, beside the published values if the file has any.

records of all seeds ─► Measured ─► View (one for each decoding of a paper's rows) ─► SweepResult ─► written.py
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agents.llm_grpo.decoding import Decoding
from benchmarks.sweep.file import RowSpec, Sweep
from benchmarks.sweep.orders import Order, compare_rows, find_orders
from benchmarks.sweep.pooling import Measured, Tested
from benchmarks.sweep.runs import PlannedRun, SweepOptions
from benchmarks.sweep.type_shares import KINDS, TYPE_SHARES
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.records import Record
from replay_sessions.store import SessionStore
from shop_env.evaluation.comparing import Comparison
from shop_env.evaluation.results import CALIBRATION_COLUMNS, intervals_text
from shop_env.evaluation.results_file import VERSIONS, Entry, EvaluationLog, read_log, read_records, steps_file
from shop_env.metrics import StepRecord
from shop_env.metrics.over_seeds import Pooled

ORACLE = "oracle"
NO_INTERVALS = (
    "The paper gives no intervals: the order of two near figures there may be chance. Of 20 pairs here that do "
    "not differ, one is significantly different by chance."
)
ONE_SEED = "One seed: the intervals are over users alone, and another seed trains another policy."
Records = dict[str, list[StepRecord]]  # by the row's label


class TableRow(Record):
    """A row of a result.

    Attributes:
        label: The label of the row.
        figures: The measured values in the order of the columns; None if no step counts for a metric.
        published: The published values by model of the paper, in the same order; empty if the paper has no such row.
        predicted: The share of steps at which each type of action is predicted; `other` is a malformed reply.
        beside: Whether the row is not in the paper's table, but a baseline or a ceiling beside it.
    """

    label: str
    figures: list[Pooled | None]
    published: dict[str, list[float | None]]
    predicted: dict[str, Pooled | None]
    beside: bool


class View(Record):
    """All rows with one decoding.

    Attributes:
        decoding: The name of the decoding; empty if the view is the only one.
        rows: The rows.
        orders: The orders of the rows that the paper has.
        compared: The comparisons that the file names.
    """

    decoding: str
    rows: list[TableRow]
    orders: list[Order]
    compared: list[Comparison]


class SweepResult(Record):
    """Everything that is written. Shares are in the range 0–1, not in percent.

    Attributes:
        columns: The headings of the columns.
        models: The paper's models, which are the keys of `published`.
        intervals: A description of the values and their intervals.
        tested: The counts behind the metrics of the first view.
        phases: The record of each phase (such as its time), by the name of the run; None for a leaderboard.
        runs: The provenance of the results, by the name of the run.
    """

    name: str
    title: str
    seeds: list[int]
    columns: list[str]
    models: list[str]
    metrics: str
    intervals: str
    notes: list[str]
    tested: Tested
    views: list[View]
    phases: dict[str, Any]
    versions: dict[str, int]
    runs: dict[str, Any]
    provenance: dict[str, Any]


class FinishedRun:
    """The log of a run, with the records of its rows."""

    def __init__(self, run: PlannedRun) -> None:
        self.run = run
        self.log: EvaluationLog = read_log(run.folder, trust=None)
        self.entries = {entry.steps: entry for entry in self.log.entries}
        self._store = SessionStore.open(str(run.store))
        self._records: dict[str, list[StepRecord]] = {}  # by the file of steps, because rows of several kinds share it

    def find(self, name: str) -> Entry | None:
        """Returns the entry of an agent by its label, or of a policy by its file name; None if there is none."""
        return self.entries.get(steps_file(name))

    def records(self, entry: Entry) -> list[StepRecord]:
        if entry.steps not in self._records:
            self._records[entry.steps] = read_records(self.run.folder, self.log, entry, self._store)
        return self._records[entry.steps]


def sweep_result(sweep: Sweep, planned: Mapping[str, Sequence[PlannedRun]], options: SweepOptions) -> SweepResult:
    """Computes the result of finished runs."""
    runs = {name: [FinishedRun(run) for run in seed_runs] for name, seed_runs in planned.items()}
    all_runs = [run for seed_runs in runs.values() for run in seed_runs]
    seeds = [run.seed for run in next(iter(planned.values()))]
    by_seed = [dict(zip(runs, of_seed, strict=True)) for of_seed in zip(*runs.values(), strict=True)]
    samples = dict.fromkeys(
        f"Seed {run.run.seed}: {text}" for run in all_runs for text in (run.log.sample.text, *run.log.sample.warnings)
    )
    measured = {}
    for name, decoding in _decodings(sweep, planned).items():
        records = [_records(sweep, of_seed, decoding) for of_seed in by_seed]
        users = [{record.user_id for record in next(iter(rows.values()))} for rows in records]
        same_users = sum(map(len, users)) > len(set().union(*users))
        measured[name] = Measured(records, same_users=same_users, preset=sweep.metrics, further=TYPE_SHARES)
    return SweepResult(
        name=options.name,
        title=sweep.title,
        seeds=seeds,
        columns=[column.heading for column in sweep.column],
        models=sweep.models,
        metrics=sweep.metrics,
        intervals=intervals_text(all_runs[0].log.rows, all_runs[0].log.config.reward_config, "users and seeds"),
        notes=[
            *sweep.notes,
            *([NO_INTERVALS] if sweep.models else []),
            *([ONE_SEED] if len(seeds) == 1 else []),
            *samples,
        ],
        tested=next(iter(measured.values())).tested(),
        views=[
            _view(sweep, decoding, of_decoding, _calibration(by_seed)) for decoding, of_decoding in measured.items()
        ],
        phases={run.run.name: run.log.training and run.log.training["phases"] for run in all_runs},
        versions=VERSIONS,
        runs={run.run.name: run.log.provenance for run in all_runs},
        provenance=provenance(sweep),
    )


def _decodings(sweep: Sweep, planned: Mapping[str, Sequence[PlannedRun]]) -> dict[str, Decoding | None]:
    """Returns the decodings of the views, by name.

    Rows without temperatures have a view for each decoding of the first run's preset (sampled, and greedy if the preset
    has it). All other tables have a single view.
    """
    config = next(iter(planned.values()))[0].config
    if not sweep.row or config is None:
        return {"": None}
    if any(row.temperature is not None for row in sweep.row):
        return {"each row's temperature": None}
    return {decoding.name: decoding for decoding in config.evaluation.get_decodings()}


def _records(sweep: Sweep, runs: Mapping[str, FinishedRun], decoding: Decoding | None) -> Records:
    """Returns the records of a seed by row: the rows of the file, or every agent and policy."""
    if not sweep.row:
        return {label: run.records(entry) for label, (run, entry) in _labelled(runs).items()}
    records = {}
    for row in sweep.row:
        run = runs[row.run or sweep.run[0].name]
        if (entry := run.find(_file_name(row, decoding))) is not None:
            records[row.label] = run.records(entry)
    if decoding is not None and not sweep.by_kind:  # agents that train nothing and, if the run has it, the oracle
        run = runs[sweep.run[0].name]
        records |= {entry.label: run.records(entry) for entry in run.entries.values() if run.find(entry.label) == entry}
        if oracle := run.find(decoding.file_name(ORACLE)):
            records[ORACLE] = run.records(oracle)
    return records


def _labelled(runs: Mapping[str, FinishedRun]) -> dict[str, tuple[FinishedRun, Entry]]:
    """Returns every agent and policy of a seed by its label, and its run's name where an earlier run has the label."""
    labelled: dict[str, tuple[FinishedRun, Entry]] = {}
    for name, run in runs.items():
        for entry in run.entries.values():
            _, earlier = labelled.setdefault(entry.label, (run, entry))
            if earlier.row != entry.row:
                labelled[f"{entry.label}, {name}"] = run, entry
    return labelled


def _calibration(by_seed: Sequence[Mapping[str, FinishedRun]]) -> dict[tuple[str, str], Pooled]:
    """Returns metrics of calibration by label and metric; without intervals, because records lack distributions."""
    values: dict[tuple[str, str], list[float]] = {}
    for label, (_, entry) in (item for runs in by_seed for item in _labelled(runs).items()):
        for metric in CALIBRATION_COLUMNS.keys() & entry.row.figures.keys():
            values.setdefault((label, metric), []).append(entry.row.figures[metric].value)
    return {key: Pooled(float(np.mean(of_seeds)), by_seed=of_seeds) for key, of_seeds in values.items()}


def _file_name(row: RowSpec, decoding: Decoding | None) -> str:
    if row.temperature is not None:
        decoding = Decoding.at(row.temperature)
    assert decoding is not None
    return decoding.file_name(row.phase)


def _view(sweep: Sweep, decoding: str, measured: Measured, calibration: Mapping[tuple[str, str], Pooled]) -> View:
    def figure(label: str, name: str) -> Pooled | None:
        return calibration.get((label, name)) if name in CALIBRATION_COLUMNS else measured.figure(label, name)

    specs = {row.label: row for row in sweep.row}
    names = [column.metric for column in sweep.column]
    labels = [*specs, *sorted(measured.rows - specs.keys(), key=lambda label: (label == ORACLE, label))]
    rows = []
    for label in labels:
        row = specs.get(label)
        published = (
            {model: [row.share(model, index) for index in range(len(names))] for model in row.published} if row else {}
        )
        rows.append(
            TableRow(
                label=label,
                figures=[figure(label, name) for name in (row.metrics(sweep.column) if row else names)],
                published=published,
                predicted={}
                if sweep.by_kind
                else {kind: measured.figure(label, f"predicted_share_{kind}") for kind in KINDS.values()},
                beside=bool(specs) and row is None,
            )
        )
    if not specs and rows[0].figures:  # best first
        rows.sort(key=lambda row: row.figures[0].value if row.figures[0] else -math.inf, reverse=True)
    return View(
        decoding=decoding, rows=rows, orders=find_orders(sweep, measured), compared=compare_rows(sweep, measured)
    )
