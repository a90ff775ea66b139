"""From an agent's records to a row of a table: figures with intervals, for terminals and for Markdown.

    list[StepRecord] ─► summarise ─► ResultRow ─► render_table (terminal) | markdown_table (files)

The leaderboard and the training run print their tables with this, so the same records give the same row in both.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shop_env.metrics import PairedTest, StepRecord, bootstrap_interval, step_metrics
from shop_env.metrics.intervals import Cluster

__all__ = [
    "COLUMNS",
    "ERRORS_AS_MISSES",
    "Comparison",
    "Figure",
    "ResultRow",
    "errors_as_misses",
    "markdown_table",
    "render_table",
    "results_console",
    "sorted_rows",
    "summarise",
]

# Figure -> heading. Shares are shown in percent; `mean_reward` and `nll` are no shares.
COLUMNS: Mapping[str, str] = {
    "exact_accuracy": "exact",
    "type_accuracy": "type",
    "type_f1_macro": "macro-F1",
    "exact_accuracy_click": "click",
    "exact_accuracy_type_and_submit": "type_and_submit",
    "exact_accuracy_terminate": "terminate",
    "mean_reward": "reward",
    "invalid_rate": "invalid",
}
# Only where an agent gives probabilities (agents/probabilities.py).
LIKELIHOOD_COLUMNS: Mapping[str, str] = {"nll": "NLL", "top1_accuracy": "top-1", "top3_accuracy": "top-3"}
# Only where an agent gave no reply at some steps: the share it answered, its exact accuracy with the others as misses.
ERRORS_AS_MISSES = "exact_accuracy_errors_as_misses"
INCOMPLETE_COLUMNS: Mapping[str, str] = {"coverage": "coverage", ERRORS_AS_MISSES: "exact, errors as misses"}
ALL_COLUMNS = {**COLUMNS, **LIKELIHOOD_COLUMNS, **INCOMPLETE_COLUMNS}
WITH_INTERVAL = ("exact_accuracy", ERRORS_AS_MISSES, "type_accuracy", "type_f1_macro", "mean_reward")
IN_POINTS = ("mean_reward",)
IN_NATS = ("nll",)
BY_TYPE = ("exact_accuracy_click", "exact_accuracy_type_and_submit", "exact_accuracy_terminate")
LABEL_WIDTH = 10  # longer labels are folded


class Figure(msgspec.Struct, frozen=True):
    """A figure and the ends of its interval; None where there is none (a known value, or nothing to draw from)."""

    value: float
    low: float | None = None
    high: float | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of `first` less that of `second` on the same steps, with its 95% intervals over users.

    Attributes:
        low, high: Of the bootstrap, which is too narrow where users are few.
        test: What a t interval and an exact test say; None where one user has all steps, or an older run made none.
        holm_p_value: The exact test's p, adjusted for the metrics of the same two.
    """

    first: str
    second: str
    metric: str
    difference: float
    low: float
    high: float
    test: PairedTest | None = None
    holm_p_value: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Of the interval that decides: the t interval over users (CR2), where there is one."""
        return (self.low, self.high) if self.test is None else (self.test.low, self.test.high)

    @property
    def sign(self) -> int:
        """1 where `first` is better, -1 where it is worse, 0 where the interval holds 0."""
        low, high = self.ends
        return (low > 0) - (high < 0)

    @property
    def told_apart(self) -> bool:
        return self.sign != 0

    def sentence(self) -> str:
        """In words, in percentage points."""
        low, high = self.ends
        verdict = "differ" if self.told_apart else "cannot be told apart"
        return (
            f"{self.first} − {self.second}, {self.metric}: {100 * self.difference:+.1f} points "
            f"[{100 * low:+.1f}, {100 * high:+.1f}]: they {verdict}{self._tested()}."
        )

    def _tested(self) -> str:
        if self.test is None:
            return ""
        p_value = f"sign flips p {self.test.sign_flip_p_value:.2g}"
        if self.holm_p_value is not None:
            p_value += f", Holm {self.holm_p_value:.2g}"
        ends = f"[{100 * self.low:+.1f}, {100 * self.high:+.1f}]"
        return f" ({p_value}, {self.test.clusters} users; bootstrap {ends})"


class ResultRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent on one split.

    Attributes:
        figures: By the names of shop_env.metrics.over_steps; a figure without a step to stand on is absent.
        steps: How many steps were scored.
        errors: At how many steps the agent gave no reply. They are in no figure but `coverage` and
            `exact_accuracy_errors_as_misses`, and a row with any is not ranked: who keeps silent when unsure would win.
        first_error: What the first of them said.
        unscored_targets: At how many steps the log lacks a field of its action, so that nothing can match it exactly.
        known: A row that was computed, not measured (the demo shop's ceiling).
    """

    label: str
    figures: dict[str, Figure]
    steps: int
    sessions: int
    errors: int = 0
    first_error: str | None = None
    unscored_targets: int = 0
    known: bool = False

    @property
    def ranked(self) -> bool:
        return self.errors == 0


def summarise(
    records: Sequence[StepRecord],
    *,
    label: str,
    preset: str = "shop_r1",
    cluster: Cluster = "user",
    samples: int = 1000,
    seed: int = 0,
) -> ResultRow:
    """The row of one agent: every metric, those of `COLUMNS` with their 95% interval.

    Args:
        preset: Whose choices the metrics follow (shop_env.metrics.presets).
        cluster: What the bootstrap draws.
        samples: How many times; 0: no intervals.
    """
    values = step_metrics(records, preset)
    counts = {name: int(values.pop(name)) for name in ("steps", "sessions", "users", "errors", "unscored_targets")}
    figures = {name: Figure(value) for name, value in values.items()}

    def with_interval(name: str, value: float, counted: Sequence[StepRecord]) -> Figure:
        if not samples:
            return Figure(value)
        ends = bootstrap_interval(counted, name, cluster=cluster, samples=samples, seed=seed, preset=preset)
        return Figure(value, *(None if math.isnan(end) else end for end in ends))

    if counts["steps"]:
        for name in (COLUMNS.keys() | LIKELIHOOD_COLUMNS.keys()) & figures.keys():
            figures[name] = with_interval(name, values[name], records)
    if counts["errors"]:
        figures["coverage"] = Figure(counts["steps"] / len(records))
        misses = errors_as_misses(records)
        exact = step_metrics(misses, preset).get("exact_accuracy")
        if exact is not None:
            figures[ERRORS_AS_MISSES] = with_interval("exact_accuracy", exact, misses)
    return ResultRow(
        label=label,
        figures=figures,
        steps=counts["steps"],
        sessions=counts["sessions"],
        errors=counts["errors"],
        unscored_targets=counts["unscored_targets"],
        first_error=next((record.error for record in records if record.error), None),
    )


def errors_as_misses(records: Sequence[StepRecord]) -> list[StepRecord]:
    """The records with each error as a reply that matches nothing."""
    return [msgspec.structs.replace(record, error=None) if record.error else record for record in records]


def sorted_rows(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """Highest exact accuracy first, then type accuracy, then label; behind them what is not ranked."""

    def place(row: ResultRow) -> tuple[bool, float, float, str]:
        by = ("exact_accuracy" if row.ranked else ERRORS_AS_MISSES, "type_accuracy")
        exact, of_type = (row.figures.get(name, Figure(-1.0)).value for name in by)
        return (not row.ranked, -exact, -of_type, row.label)

    return sorted(rows, key=place)


def results_console() -> Console:
    """Standard output; 120 columns at least where that is no terminal: a pipe has no width of its own."""
    console = Console()
    return console if console.is_terminal else Console(width=max(console.width, 120))


def render_table(
    rows: Sequence[ResultRow], *, title: str | None = None, caption: str | None = None, width: int | None = None
) -> Table:
    """The table for a terminal, intervals under their figures.

    Args:
        width: The terminal's, in characters; one too narrow goes without the figures by type. None: wide enough.
    """
    widths = {name: _width(name, rows) for name in _columns(rows)}
    room = 1000 if width is None else width
    if _others_width(widths, rows) + LABEL_WIDTH > room:
        widths = {name: needed for name, needed in widths.items() if name not in BY_TYPE}
    longest = max([len("agent"), *(len(_label(row)) for row in rows)])
    label_width = min(longest, max(LABEL_WIDTH, room - _others_width(widths, rows)))
    table = Table(title=title, caption=caption, box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.title_justify = table.caption_justify = "left"
    table.add_column("agent", overflow="fold", width=label_width)
    for name, needed in widths.items():
        table.add_column(_heading(name), justify="right", width=needed)
    for heading in _counts(rows):
        table.add_column(heading.replace("_", "\n"), justify="right")
    for row in rows:
        # Text, not str: a label is the user's and may hold what rich takes for markup.
        table.add_row(Text(_label(row)), *_cells(row, rows, widths, _two_lines), style="dim" if row.known else None)
    return table


def markdown_table(rows: Sequence[ResultRow], more: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """The table as GitHub-flavoured Markdown, one line per row.

    Args:
        more: Further columns: heading -> label of a row -> text.
    """
    more = more or {}
    columns = _columns(rows)
    headings = ["agent", *columns.values(), *(heading.replace("_", " ") for heading in _counts(rows)), *more]
    lines = ["| " + " | ".join(headings) + " |", "|---" + "|--:" * (len(headings) - 1) + "|"]
    for row in rows:
        label = _label(row).replace("|", "\\|")
        cells = [*_cells(row, rows, columns, _one_line), *(texts.get(row.label, "–") for texts in more.values())]
        lines.append("| " + " | ".join([label, *cells]) + " |")
    return "\n".join(lines) + "\n"


def _label(row: ResultRow) -> str:
    return row.label if row.ranked else f"{row.label} (not ranked)"


def _cells(
    row: ResultRow, rows: Sequence[ResultRow], names: Iterable[str], show: Callable[[str, Figure | None], str]
) -> list[str]:
    figures = [show(name, row.figures.get(name)) for name in names]
    return figures + [str(getattr(row, count)) for count in _counts(rows)]


def _columns(rows: Sequence[ResultRow]) -> dict[str, str]:
    """Figure -> heading; likelihoods, and what tells of missing replies, only where a row has them."""
    told = {
        name: heading
        for name, heading in {**LIKELIHOOD_COLUMNS, **INCOMPLETE_COLUMNS}.items()
        if any(name in row.figures for row in rows)
    }
    return {**COLUMNS, **told}


def _counts(rows: Sequence[ResultRow]) -> list[str]:
    return [name for name in ("errors", "unscored_targets") if any(getattr(row, name) for row in rows)] + ["steps"]


def _width(name: str, rows: Sequence[ResultRow]) -> int:
    """What a column needs."""
    lines = [line for row in rows for line in _two_lines(name, row.figures.get(name)).split("\n")]
    return max(map(len, [*lines, *_heading(name).split("\n")]))


def _others_width(widths: Mapping[str, int], rows: Sequence[ResultRow]) -> int:
    """What the columns beside the label take, two characters between neighbours included."""
    headings = [count.split("_") for count in _counts(rows)]
    counts = [max([*map(len, words), *(len(str(getattr(row, "_".join(words)))) for row in rows)]) for words in headings]
    return sum(needed + 2 for needed in [*widths.values(), *counts])


def _heading(name: str) -> str:
    return ALL_COLUMNS[name].replace("_", " ").replace(" and ", " and\n").replace(", errors ", ",\nerrors ")


def _one_line(name: str, figure: Figure | None) -> str:
    value, _, interval = _two_lines(name, figure).partition("\n")
    return f"{value} ({interval})" if interval else value


def _two_lines(name: str, figure: Figure | None) -> str:
    if figure is None:
        return "–"
    shown = _number(name, figure.value)
    if name in WITH_INTERVAL and figure.low is not None and figure.high is not None:
        shown += f"\n{_number(name, figure.low)}–{_number(name, figure.high)}"
    return shown


def _number(name: str, value: float) -> str:
    if name in IN_NATS:
        return f"{value:.2f}"
    return f"{value:.1f}" if name in IN_POINTS else f"{100 * value:.1f}"
