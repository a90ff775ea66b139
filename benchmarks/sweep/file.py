"""A sweep file: which runs, on which seeds and stores, and which rows and columns their table has.

    title = "The tiny policy on three shops"
    seeds = [101, 102, 103]
    store = "demo"                 # a demo shop of each seed's own; or a path, in which {seed} stands for the seed
    compare = [["Shop-R1", "SFT"]]
    [[run]]                        # a training: `shop-r1 train`
    preset = "tiny_cpu"
    flags = ["--evaluation.sessions", "600"]
    [[run]]                        # agents: `shop-r1 rank`; {seed} stands for the seed
    name = "agents"
    agents = ["choice", "SFT=runs/seed{seed}/sft"]
    flags = ["--sessions", "600"]

Without [[row]] and [[column]] the table has every agent and policy of the runs. The papers' tables are such files too
(papers/*.toml): a row there is a phase of a run, with the published values beside it.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any

import msgspec

from benchmarks.sweep.type_shares import FINE_KINDS
from replay_sessions.foundation.config_errors import load_toml
from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.records import Config

PAPERS: Any = resources.files("benchmarks.sweep") / "papers"


class RunSpec(Config):
    """One command for each seed.

    Attributes:
        name: Its folder in OUT.
        preset: Of a training.
        rows_file: Of a training: whose phases it has in place of the preset's (agents/llm_grpo/presets/rows).
        agents: In place of a training, these agents, as in a leaderboard.
        flags: Further words of the command.
        flags_of: Further words for single presets, by their names: a run that has these needs those of its preset.
    """

    name: str = "run"
    preset: str = "tiny_cpu"
    rows_file: str | None = None
    agents: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    flags_of: dict[str, tuple[str, ...]] = {}


class ColumnSpec(Config):
    """A figure.

    Attributes:
        metric: Its name in shop_env.metrics or benchmarks/sweep/type_shares.py, where {} stands for the row's kind; in
            files without [[row]], of calibration too.
        signed: A difference, of which the sign is compared with the paper's; else the order of rows is.
    """

    metric: str
    heading: str
    signed: bool = False


class RowSpec(Config):
    """A row.

    Attributes:
        phase: Whose policy it is.
        run: The name of its run; None: the first.
        temperature: At which it is evaluated; None: as the preset says.
        kind: The type of action that stands for {} in the metrics' names; `every`: a row for each kind of click and
            each other type (type_shares.py), with the kind before its label.
        published: For each model of the paper its figures in percent, in the order of the columns, `nan` where it gives
            none, fewer where it lacks the last columns; nothing for a row that the paper does not have.
    """

    label: str
    phase: str
    run: str | None = None
    temperature: float | None = None
    kind: str = ""
    published: dict[str, list[float]] = {}

    def metrics(self, columns: Sequence[ColumnSpec]) -> list[str]:
        """The names of its figures."""
        return [column.metric.format(self.kind) for column in columns]

    def share(self, model: str, index: int) -> float | None:
        """The published figure of a model in a column, as a share; None where the paper gives none."""
        percents = self.published.get(model, [])
        return round(percents[index] / 100, 6) if index < len(percents) and not math.isnan(percents[index]) else None


class Sweep(Config):
    """A whole file.

    Attributes:
        seeds: Each run is made once for each.
        store: Where the runs' sessions are from.
        metrics: Whose choices the figures are counted by (shop_env/metrics/choices.py).
        compare: Pairs of rows by label whose difference is printed.
        notes: What else a reader should know.
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
        names, labels = ([one.name for one in self.run], [row.label for row in self.row])
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
    def by_temperature(self) -> bool:
        """True where each row has a temperature of its own."""
        return any(row.temperature is not None for row in self.row)

    @property
    def by_kind(self) -> bool:
        """True where the rows are types of action, all of one policy."""
        return any(row.kind for row in self.row)

    @property
    def models(self) -> list[str]:
        """The paper's models, the one with most rows first."""
        counts = Counter(model for row in self.row for model in row.published)
        return [model for model, _ in counts.most_common()]

    def rows_of(self, run: RunSpec) -> list[RowSpec]:
        """The rows of a run."""
        return [row for row in self.row if (row.run or self.run[0].name) == run.name]


def load_sweep(name: str) -> Sweep:
    """The sweep of a .toml FILE, or a paper's table by name.

    Raises:
        BadConfig: There is none, or it does not read as one.
    """
    sweep = load_toml(Sweep, "sweep", name, PAPERS)
    return msgspec.structs.replace(sweep, row=tuple(_rows_of_kinds(sweep.row)))


def _rows_of_kinds(rows: Sequence[RowSpec]) -> Iterator[RowSpec]:
    """Rows of every kind one by one, kind after kind."""
    yield from (row for row in rows if row.kind != "every")
    for kind in FINE_KINDS.values():
        for row in rows:
            if row.kind == "every":
                yield msgspec.structs.replace(row, label=f"{kind.replace('_', ' ')}, {row.label}", kind=kind)
