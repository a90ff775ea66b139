"""The papers' tables as data: which rows and figures, what was published, which phases make the rows here.

    tables/2.toml … tables/customer8.toml ─┬─► PaperTable
    papers/shop_r1.toml, customer_r1.toml ─┘

A row of a table is a phase of a rows file (agents/llm_grpo/presets/rows), evaluated as the table says. Published
figures are stored in percent as they are printed, and read as shares; `nan` where the paper gives none.
"""

import math
from collections import Counter
from importlib import resources
from typing import Any

import msgspec

from replay_sessions.foundation.config_errors import what_is_wrong
from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.records import Config

_ORDER = ("2", "3", "4", "5", "fig2", "customer4", "customer5", "customer6", "customer7", "customer8")


class Paper(Config):
    """A paper.

    Attributes:
        metrics: Whose choices its figures are counted by (shop_env/metrics/choices.py).
        settings: What was done there, by the aspects of benchmarks/paper/runs.py.
    """

    name: str
    metrics: str
    settings: dict[str, str]


class PaperColumn(Config):
    """A figure.

    Attributes:
        metric: Its name in shop_env.metrics or benchmarks/paper/result.py; {} stands for the row's kind.
        signed: A difference, of which the sign is compared with the paper's; else the order of rows is.
    """

    metric: str
    heading: str
    signed: bool = False


class PaperRow(Config):
    """A row.

    Attributes:
        phase: Whose policy it is.
        variant: Trained otherwise than the other rows (PaperTable.variants).
        temperature: At which it is evaluated; None: as the table is, sampled and greedy.
        kind: The type of action that stands for {} in the metrics' names.
        published: For each model of the paper its figures in percent, in the order of the columns; nothing for a row
            that the paper does not have.
    """

    label: str
    phase: str
    variant: str | None = None
    temperature: float | None = None
    kind: str = ""
    published: dict[str, list[float]] = {}

    def metrics(self, columns: list[PaperColumn]) -> list[str]:
        """The names of its figures."""
        return [column.metric.format(self.kind) for column in columns]

    def share(self, model: str, index: int) -> float | None:
        """The published figure of a model in a column, as a share; None where the paper gives none."""
        percent = self.published[model][index] if model in self.published else math.nan
        return None if math.isnan(percent) else round(percent / 100, 6)


class Variant(Config):
    """How rows are trained otherwise (Customer-R1, table 6).

    Attributes:
        max_tokens: The context's tokens, as a share of the preset's.
        max_tokens_of: As a number, for presets whose sessions such a share would hold all the same.
        width: Of a model trained from scratch, as a share; a pretrained one is replaced by --smaller-model.
    """

    max_tokens: float | None = None
    max_tokens_of: dict[str, int] = {}
    width: float | None = None


class PaperTable(Config):
    """A table, or a figure's points.

    Attributes:
        paper: Whose: the tables of one paper share one run a seed.
        rows_file: Of which its phases are (agents/llm_grpo/presets/rows).
        drawn_by_temperature: Also a plot of the figures over the rows' temperatures.
        compared: Pairs of rows by label that are compared though the paper does not have both.
        notes: What else a reader should know, of the paper or of the rows.
    """

    title: str
    paper: str
    rows_file: str
    columns: list[PaperColumn]
    rows: list[PaperRow]
    variants: dict[str, Variant] = {}
    drawn_by_temperature: bool = False
    compared: list[tuple[str, str]] = []
    notes: list[str] = []

    def __post_init__(self) -> None:
        labels = [row.label for row in self.rows]
        for row in self.rows:
            if labels.count(row.label) > 1:
                raise BadConfig(f"two rows are labelled '{row.label}'.")
            if row.variant is not None and row.variant not in self.variants:
                raise BadConfig(f"row '{row.label}' is of variant '{row.variant}', which is none of the table's.")
            for model, figures in row.published.items():
                if len(figures) != len(self.columns):
                    raise BadConfig(
                        f"row '{row.label}', {model}: {len(figures)} values for {len(self.columns)} columns."
                    )
        if unknown := [label for pair in self.compared for label in pair if label not in labels]:
            raise BadConfig(f"compared: no row '{unknown[0]}'. {did_you_mean(unknown[0], labels)}")

    @property
    def by_kind(self) -> bool:
        """Whether the rows are types of action, all of one policy."""
        return any(row.kind for row in self.rows)

    @property
    def models(self) -> list[str]:
        """The paper's models, the one with most rows first."""
        counts = Counter(model for row in self.rows for model in row.published)
        return [model for model, _ in counts.most_common()]

    def phases(self, variant: str | None) -> list[str]:
        """What has to be trained for the rows of a variant, or for those of none."""
        return list(dict.fromkeys(row.phase for row in self.rows if row.variant == variant))

    def runs(self) -> list[str | None]:
        """The variants whose rows it has; None: the preset as it is."""
        return list(dict.fromkeys(row.variant for row in self.rows))

    def source(self) -> Paper:
        """The paper that it is of."""
        paper: Paper = _read(f"papers/{self.paper}.toml", Paper)
        return paper


def table_names() -> list[str]:
    """All tables, as `--table` takes them."""
    return list(_ORDER)


def load_table(name: str) -> PaperTable:
    """A table by name.

    Raises:
        BadConfig: There is none of that name.
    """
    if name not in _ORDER:
        raise BadConfig(f"Unknown table '{name}'. {did_you_mean(name, _ORDER)}")
    table: PaperTable = _read(f"tables/{name}.toml", PaperTable)
    return table


def _read(file: str, kind: Any) -> Any:
    content = (resources.files("benchmarks.paper") / file).read_bytes()
    try:
        return msgspec.toml.decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise BadConfig(f"'{file}': {what_is_wrong(error, kind)}") from error
