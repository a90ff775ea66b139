"""Reads a sweep file, which lists runs, their seeds and store, and the rows and columns of their table.

    title = "The tiny policy on three shops"
    seeds = [101, 102, 103]
    store = "demo"                 # another demo shop for each seed; or a path, in which {seed} stands for the seed
    compare = [["Shop-R1", "SFT"]]
    [[run]]                        # a training: `shop-r1 train`
    preset = "tiny_cpu"
    flags = ["--evaluation.sessions", "600"]
    [[run]]                        # agents: `shop-r1 rank`; {seed} stands for the seed
    name = "agents"
    agents = ["choice", "before=runs/before/seed{seed}/sft"]
    flags = ["--sessions", "600"]

Without [[row]], the table has every agent and policy of the runs. The papers' tables are such files too
(papers/*.toml): their rows are phases of a run, with the published values beside them.
"""

import math
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from typing import Any

from replay_sessions.foundation.config_errors import load_toml
from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.records import Config

PAPERS: Any = resources.files("benchmarks.sweep") / "papers"


class RunSpec(Config):
    """A command that runs once for each seed.

    Attributes:
        name: The name of its folder in OUT.
        preset: The preset of a training.
        rows_file: A file of phases that replace those of a training's preset (agents/llm_grpo/presets/rows).
        agents: Agents to rank, as in a leaderboard. If not empty, the run is no training.
        flags: Further flags of the command.
        flags_of: Further flags by the name of the preset. If not empty, the preset in use must be among them.
    """

    name: str = "run"
    preset: str = "tiny_cpu"
    rows_file: str | None = None
    agents: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    flags_of: dict[str, tuple[str, ...]] = {}


class ColumnSpec(Config):
    """A column of the table.

    Attributes:
        metric: The name of a metric in shop_env.metrics or benchmarks/sweep/type_shares.py, in which {} stands for the
            row's kind. Files without [[row]] may also use metrics of calibration.
        heading: The heading of the column.
        signed: Whether the metric is a difference. If so, its sign is compared with the paper's; else the order of rows
            is.
    """

    metric: str
    heading: str
    signed: bool = False


class RowSpec(Config):
    """A row of the table: the policy of a phase.

    Attributes:
        label: The label of the row.
        phase: The name of the phase.
        run: The name of the run. If None, the first run.
        temperature: The sampling temperature of the evaluation. If None, as the preset says.
        kind: The type of action that replaces {} in the metrics' names.
        published: The paper's values in percent by model, in the order of the columns. A missing value is `nan`, and
            the last columns may be omitted; empty if the paper does not have the row.
    """

    label: str
    phase: str
    run: str | None = None
    temperature: float | None = None
    kind: str = ""
    published: dict[str, list[float]] = {}

    def metrics(self, columns: Sequence[ColumnSpec]) -> list[str]:
        """Returns the names of the row's metrics, in the order of the columns."""
        return [column.metric.format(self.kind) for column in columns]

    def share(self, model: str, index: int) -> float | None:
        """Returns the published value of a model in a column, as a share; None if the paper has none."""
        percents = self.published.get(model, [])
        return round(percents[index] / 100, 6) if index < len(percents) and not math.isnan(percents[index]) else None


class Sweep(Config):
    """The content of a sweep file.

    Attributes:
        title: The title of the table.
        run: The runs.
        seeds: The seeds; each run is repeated for each seed.
        store: The store of the runs, `demo` or a path. For a training, `demo` stands for the store of its preset.
        metrics: The metrics preset (shop_env/metrics/presets.py).
        column: The columns of the table.
        row: The rows of the table. If empty, every agent and policy of the runs.
        compare: Pairs of rows, by label, to compare.
        notes: Notes for the reader of the table.
    """

    title: str
    run: tuple[RunSpec, ...]
    seeds: tuple[int, ...] = (0, 1, 2)
    store: str = "demo"
    metrics: str = "shop_r1"
    column: tuple[ColumnSpec, ...] = (
        ColumnSpec(metric="exact_accuracy", heading="exact"),
        ColumnSpec(metric="type_accuracy", heading="type"),
        ColumnSpec(metric="type_f1_macro", heading="macro-F1"),
        ColumnSpec(metric="mean_reward", heading="reward"),
    )
    row: tuple[RowSpec, ...] = ()
    compare: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names, labels = ([run.name for run in self.run], [row.label for row in self.row])
        for kind, values in (("runs", names), ("rows", labels)):
            if twice := [value for value, count in Counter(values).items() if count > 1]:
                raise BadConfig(f"two {kind} are called '{twice[0]}'.")
        for row in self.row:
            if row.run is not None and row.run not in names:
                raise BadConfig(f"row '{row.label}' is of run '{row.run}'. {did_you_mean(row.run, names)}")
            for model, figures in row.published.items():
                if len(figures) > len(self.column):
                    raise BadConfig(f"row '{row.label}', {model}: {len(figures)} values, {len(self.column)} columns.")
        if labels and (unknown := [label for pair in self.compare for label in pair if label not in labels]):
            raise BadConfig(f"compare: no row '{unknown[0]}'. {did_you_mean(unknown[0], labels)}")
        if not self.run or not self.seeds:
            raise BadConfig("a sweep needs a [[run]] and a seed.")

    @property
    def by_kind(self) -> bool:
        """True if the rows are types of action."""
        return any(row.kind for row in self.row)

    @property
    def models(self) -> list[str]:
        """The paper's models, by their number of rows, most first."""
        counts = Counter(model for row in self.row for model in row.published)
        return [model for model, _ in counts.most_common()]

    def rows_of(self, run: RunSpec) -> list[RowSpec]:
        """Returns the rows of a run."""
        return [row for row in self.row if (row.run or self.run[0].name) == run.name]


def load_sweep(name: str) -> Sweep:
    """Loads the sweep of a .toml FILE, or of a paper's table by its name.

    Raises:
        BadConfig: The file does not exist or is no valid sweep.
    """
    return load_toml(Sweep, "sweep", name, PAPERS)
