"""Renders the report as one HTML file: tables, charts and the session viewer of templates/report.html.jinja.

The file loads nothing: a Content-Security-Policy forbids it and allows only the script with the given digest. Text from
other people is escaped by jinja2 or packed (session_data.py).

With --tables it also writes paper.tex and each table as CSV: ranking.csv, differences.csv, outcomes.csv, …
"""

import base64
import hashlib
import io
import math
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from agents.llm_grpo.training_log import COMPARED, training_sentences
from benchmarks.report.curves import draw_curves
from benchmarks.report.evidence import OUTCOMES, RIGHT, Evidence, Judged
from benchmarks.report.paper_table import paper_latex
from benchmarks.report.session_data import SessionData
from benchmarks.report.step_tables import (
    action_mix,
    confusion,
    differences_table,
    fidelity,
    leader,
    outcomes,
    reward_terms,
    sample_rationales,
)
from replay_sessions.foundation.durable_files import replace_file
from replay_sessions.foundation.table import Column, Estimate, Table, format_cell
from shop_env.evaluation.comparing import Comparison
from shop_env.evaluation.results import ERRORS_AS_MISSES, ResultRow, dominant_type, intervals_text, results_table


def write_tables(
    evidence: Evidence,
    compared: Sequence[Comparison],
    tables: Sequence[Table],
    columns: Sequence[Column],
    folder: Path,
) -> list[Path]:
    """Writes each table as CSV and the table for a paper, and returns the paths of the files."""
    texts = {folder / f"{table.name}.csv": table.csv() for table in tables}
    texts[folder / "paper.tex"] = paper_latex(evidence, compared, columns)
    for path, text in texts.items():
        replace_file(path, text)
    return [*texts]


SCRIPTS = ("blocks.js", "page_frame.js", "filters.js", "answers.js", "list.js", "keys.js", "viewer.js")
AXIS_STEP = 0.1
NEAR = 0.15  # larger differences do not extend the axis of a chart


def all_tables(evidence: Evidence, compared: Sequence[Comparison], judged: Judged) -> list[Table]:
    """Builds every table of the report, for the page and for --tables."""
    over = f"{evidence.config.cluster}s"
    notes = [intervals_text(evidence.rows, evidence.config.reward_config, over)]
    sample, metrics = evidence.log.sample, evidence.config.metrics
    ranking = results_table(evidence.rows, title="All agents", notes=notes, sample=sample, metrics=metrics)
    tables = [ranking, outcomes(judged), confusion(judged), reward_terms(evidence, judged)]
    if compared:
        tables.insert(1, differences_table(compared, over))
    return [*tables, action_mix(evidence), fidelity(evidence)]


def render_page(
    evidence: Evidence,
    compared: Sequence[Comparison],
    judged: Judged,
    headline: Sequence[str],
    tables: Sequence[Table],
    data: SessionData,
) -> str:
    """Renders the whole file.

    Args:
        evidence: The evaluation.
        compared: The paired differences.
        judged: Each agent's judged steps, by its label.
        headline: The sentences of the first screen.
        tables: The tables from `all_tables`.
        data: The data of the session viewer.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("benchmarks.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = format_cell
    by_name = {table.name: table for table in tables}
    script = "\n".join(_source(name) for name in SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    records = next(iter(evidence.records.values()))
    return environment.get_template("report.html.jinja").render(
        evidence=evidence,
        headline=headline,
        tables=by_name,
        style=Markup(_source("report.css")),
        script=Markup(script),
        script_digest=digest,
        ranked=_ranked(evidence, judged),
        axis=_axis(evidence),
        outcome_words=OUTCOMES,
        met_outcomes=[column.name for column in by_name["outcomes"].columns[1:] if column.name != RIGHT],
        compared=_whiskers(evidence, compared),
        comparisons=list(training_sentences(evidence.log))[:-1],
        confusions={
            label: [row[1:] for row in rows] for label, rows in groupby(by_name["confusion"].rows, key=itemgetter(0))
        },
        curves=_embed_curves(evidence),
        rationales=sample_rationales(judged),
        labels=list(judged),
        users=len({record.user_id for record in records}),
        steps=len(records),
        data=data,
    )


def _source(name: str) -> str:
    return (resources.files("benchmarks.report") / "templates" / name).read_text(encoding="utf-8")


def _embed_curves(evidence: Evidence) -> str | None:
    """Draws the curves of the training runs and returns the data URL of a PNG image; None without training runs."""
    if not evidence.runs:
        return None
    file = io.BytesIO()
    draw_curves(evidence.runs).savefig(file, format="png", dpi=110)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _axis(evidence: Evidence) -> dict[str, Any]:
    """Returns the axis of exact match, from 0 to the round share above every interval."""
    estimates = filter(None, map(_exact, evidence.rows))
    highest = max((max(estimate.value, estimate.high or 0.0) for estimate in estimates), default=1.0)
    top = max(AXIS_STEP, math.ceil(highest / AXIS_STEP - 1e-9) * AXIS_STEP)
    tick_step = AXIS_STEP if top <= 0.5 else 2 * AXIS_STEP
    return {"top": top, "ticks": [number * tick_step for number in range(int(top / tick_step + 1e-9) + 1)]}


def _exact(row: ResultRow) -> Estimate | None:
    return row.figures.get("exact_accuracy" if row.ranked else ERRORS_AS_MISSES)


def _ranked(evidence: Evidence, judged: Judged) -> list[dict[str, Any]]:
    """Returns the rows of the first screen: exact match, drawn as a dot with whiskers, and the kinds of misses."""
    best, labels = leader(evidence), list(judged)
    rows = []
    for row in evidence.rows:
        steps = judged.get(row.label, ())
        counts = Counter(step.outcome for step in steps)
        rows.append(
            {
                "label": row.label,
                "kind": _kind(evidence, row),
                "dominant": dominant_type(evidence.records.get(row.label, ())),
                "best": best is not None and row.label == best.label,
                "estimate": _exact(row),
                "misses": [
                    {"code": code, "words": words, "steps": counts[code], "share": counts[code] / len(steps)}
                    for code, words in OUTCOMES.items()
                    if counts[code] and code != RIGHT
                ],
                "agent": labels.index(row.label) if row.label in judged else None,
            }
        )
    return rows


def _kind(evidence: Evidence, row: ResultRow) -> str:
    if row.known:
        return "computed"
    if not row.ranked:
        return f"not ranked: no reply at {row.errors} of {row.steps + row.errors} steps"
    return "reference" if row.label in evidence.references else ""


def _whiskers(evidence: Evidence, compared: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Returns a chart around 0 of the differences from the best agent, then of the other comparisons, by metric."""
    best = leader(evidence)
    charts = []
    for metric, words in COMPARED.items():
        tests = [test for test in compared if test.metric == metric]
        from_best = [test for test in tests if best is not None and test.second == best.label]
        others = [test for test in tests if test not in from_best]
        if from_best:
            title = f"Differences in {words}, each minus {from_best[0].second}"
            charts.append(_whisker_chart(title, from_best, False))
        if others:
            charts.append(_whisker_chart(f"Differences in {words}, the run's own comparisons", others, True))
    return charts


def _whisker_chart(title: str, comparisons: Sequence[Comparison], names_second: bool) -> dict[str, Any]:
    """Returns a chart of differences. A far row would compress all others, so an arrow and its numbers replace it."""
    distances = [max(abs(end or 0.0) for end in (test.difference, test.low, test.high)) for test in comparisons]
    near = [end for end in distances if end <= NEAR] or distances
    reach = max(0.01, math.ceil(max(near) / 0.01) * 0.01)
    rows = [(test, distance <= reach) for test, distance in zip(comparisons, distances, strict=True)]
    return {"title": title, "reach": reach, "rows": rows, "names_second": names_second}
