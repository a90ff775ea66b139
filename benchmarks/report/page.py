"""The report as one HTML file: figures, tables, charts and the session viewer in templates/report.html.jinja.

Nothing is loaded from anywhere: a Content-Security-Policy forbids it, and lets only the script run whose digest it has.
Text that others wrote reaches the file escaped by jinja2, or packed (packing.py).
"""

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from agents.one_sided import one_sided
from agents.results import ERRORS_AS_MISSES, Comparison, ResultRow
from benchmarks.report.calibration import Calibration, calibration, calibration_table
from benchmarks.report.comparisons import COMPARED, differences_table, leader, ranking, ranking_table
from benchmarks.report.curves import phase_charts, reliability_chart
from benchmarks.report.evidence import Evidence
from benchmarks.report.judged_steps import OUTCOMES, RIGHT, JudgedStep
from benchmarks.report.session_data import SessionData
from benchmarks.report.step_figures import action_mix, confusion, fidelity, outcomes, reward_terms, sample_rationales
from benchmarks.report.tables import Table, shown

__all__ = ["all_tables", "calibrations", "render_page"]

SCRIPTS = ("blocks.js", "page_frame.js", "filters.js", "answers.js", "keys.js", "viewer.js")
AXIS_STEP = 0.1
NEAR = 0.15  # a difference that an axis of differences reaches out to
Judged = Mapping[str, Sequence[JudgedStep]]


def all_tables(evidence: Evidence, found: Sequence[Comparison], judged: Judged) -> list[Table]:
    """Every table of the report, for the page and for --tables."""
    tables = [ranking_table(evidence), outcomes(judged), confusion(judged), reward_terms(evidence, judged)]
    if found:
        tables.insert(1, differences_table(found))
    if calibrated := calibrations(evidence):
        tables.append(calibration_table(calibrated))
    return [*tables, action_mix(evidence), fidelity(evidence)]


def render_page(
    evidence: Evidence,
    found: Sequence[Comparison],
    judged: Judged,
    said: Sequence[str],
    data: SessionData | None,
    no_sessions: str,
) -> str:
    """The whole file.

    Args:
        found: The paired differences.
        said: The sentences of the first screen.
        data: What the viewer shows; None: there is none, and `no_sessions` says why.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("benchmarks.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    tables = {table.name: table for table in all_tables(evidence, found, judged)}
    script = "\n".join(_source(name) for name in SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    calibrated = calibrations(evidence)
    return environment.get_template("report.html.jinja").render(
        evidence=evidence,
        said=said,
        tables=tables,
        style=Markup(_source("report.css")),
        script=Markup(script),
        script_digest=digest,
        ranked=_ranked(evidence, judged),
        axis=_axis(evidence),
        outcome_words=OUTCOMES,
        met_outcomes=[column.name for column in tables["outcomes"].columns[1:] if column.name != RIGHT],
        compared=_whiskers(evidence, found),
        confusions=_confusions(tables["confusion"]),
        reliability={label: (one, reliability_chart(one)) for label, one in calibrated.items()},
        phases=[(curves, phase_charts(curves)) for curves in evidence.phases],
        rationales=sample_rationales(judged),
        labels=list(judged),
        people=len({step.record.user_id for step in next(iter(judged.values()))}),
        sessions=len({step.record.session_id for step in next(iter(judged.values()))}),
        steps=len(next(iter(judged.values()))),
        data=data,
        no_sessions=no_sessions,
    )


def _source(name: str) -> str:
    return (resources.files("benchmarks.report") / "templates" / name).read_text(encoding="utf-8")


def calibrations(evidence: Evidence) -> dict[str, Calibration]:
    found = {label: calibration(evidence, label) for label in evidence.labels if label in evidence.probabilities}
    return {label: one for label, one in found.items() if one is not None}


def _axis(evidence: Evidence) -> dict[str, Any]:
    """From 0 to the round share above every interval."""
    ends = [
        end
        for row in evidence.rows
        if (figure := _exact(row))
        for end in (figure.value, figure.high)
        if end is not None
    ]
    top = max(AXIS_STEP, math.ceil(max(ends, default=1.0) / AXIS_STEP - 1e-9) * AXIS_STEP)
    every = AXIS_STEP if top <= 0.5 else 2 * AXIS_STEP
    return {"top": top, "ticks": [number * every for number in range(int(top / every + 1e-9) + 1)]}


def _exact(row: ResultRow) -> Any:
    return row.figures.get("exact_accuracy" if row.ranked else ERRORS_AS_MISSES)


def _ranked(evidence: Evidence, judged: Judged) -> list[dict[str, Any]]:
    """The first screen: each row's exact match as a dot with whiskers, and what its misses are."""
    top, best, labels = _axis(evidence)["top"], leader(evidence), list(judged)
    rows = []
    for row in ranking(evidence):
        figure = _exact(row)
        steps = judged.get(row.label, ())
        counts = {code: sum(step.outcome == code for step in steps) for code in OUTCOMES if code != RIGHT}
        rows.append(
            {
                "label": row.label,
                "kind": _kind(evidence, row),
                "one_sided": one_sided(evidence.records.get(row.label, ())),
                "best": best is not None and row.label == best.label,
                "figure": figure,
                "at": figure and 100 * figure.value / top,
                "low": figure and figure.low is not None and 100 * figure.low / top,
                "high": figure and figure.high is not None and 100 * figure.high / top,
                "misses": [
                    {"code": code, "words": OUTCOMES[code], "steps": count, "share": count / len(steps)}
                    for code, count in counts.items()
                    if count
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


def _whiskers(evidence: Evidence, found: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Differences as charts around 0: by metric from the best agent, then those that the run itself has drawn."""
    best = leader(evidence)
    charts = []
    for metric, words in COMPARED.items():
        from_best = [one for one in found if one.metric == metric and best is not None and one.second == best.label]
        others = [one for one in found if one.metric == metric and one not in from_best]
        if from_best and best is not None:
            charts.append(_whisker_chart(f"{words.capitalize()}, each less {best.label}", from_best))
        if others:
            charts.append(
                _whisker_chart(f"{words.capitalize()}, the run's own comparisons", others) | {"tells_second": True}
            )
    return [chart | {"open": place == 0} for place, chart in enumerate(charts)]


def _whisker_chart(title: str, found: Sequence[Comparison]) -> dict[str, Any]:
    """Rows that are far away would press all others together: they are told by an arrow and their figures."""
    ends = [abs(end) for one in found for end in (one.low, one.high)]
    near = [end for end in ends if end <= NEAR] or ends
    reach = max(0.01, math.ceil(max(near) / 0.01) * 0.01)
    rows = [
        {
            "one": one,
            "beyond": None if max(abs(one.low), abs(one.high)) <= reach else "left" if one.difference < 0 else "right",
            "at": 50 + 50 * one.difference / reach,
            "low": 50 + 50 * one.low / reach,
            "high": 50 + 50 * one.high / reach,
        }
        for one in found
    ]
    beyond = any(row["beyond"] for row in rows)
    return {"title": title, "reach": reach, "rows": rows, "beyond": beyond, "tells_second": False}


def _confusions(table: Table) -> list[dict[str, Any]]:
    """The confusion of each agent with shares of its rows, for shading."""
    agents: dict[str, list[dict[str, Any]]] = {}
    for label, logged, *counts in table.rows:
        numbers = [int(count) for count in counts if isinstance(count, int)]
        total = sum(numbers)
        cells = [{"steps": count, "share": count / total if total else 0.0} for count in numbers]
        agents.setdefault(str(label), []).append({"logged": logged, "cells": cells, "steps": total})
    names = [column.heading for column in table.columns[2:]]
    return [{"label": label, "predicted": names, "rows": rows} for label, rows in agents.items()]
