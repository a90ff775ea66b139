"""Reads the tables of the docs from benchmarks/results: a record's Markdown, or the measurements of a speed record."""

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from replay_sessions.foundation.errors import BadConfig
from shop_env.versions import SCORING_VERSION

RESULTS = Path(__file__).parents[1] / "results"
# On a page, whose table stands without the line below the record's that says "percent".
HEADINGS = {"row": "agent", **{name: f"{name} %" for name in ("exact", "type", "macro-F1", "top-3")}}


def get_table(results: Path, name: str, columns: Sequence[str], rows: Sequence[str] = ()) -> str:
    """Returns a table of a record as Markdown, under the page's HEADINGS.

    Args:
        results: The folder of the records.
        name: The record without its suffix, such as `baselines/demo`, or `records/all` for the list of records.
        columns: Headings to select, in the record's order; if empty, all. The first table that has them all is used.
        rows: First cells of the rows to select, in the record's order; if empty, all.

    Raises:
        BadConfig: The record does not exist, or no table in it has these columns and rows.
    """
    if name == "records/all":
        return _list_records(results)
    record = results / name
    if record.parent.name == "speed":
        return _get_speed(record.with_suffix(".json"), rows)
    try:
        lines = record.with_suffix(".md").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadConfig(f"'{name}' names no record in '{results}': {error.strerror}") from error
    for is_table, table in groupby(lines, key=lambda line: line.startswith("|")):
        cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
        if is_table and set(columns) <= set(cells[0]) and set(rows) <= {row[0] for row in cells}:
            indices: list[int] = []
            for number, heading in enumerate(cells[0]):
                # A heading that occurs several times, such as the paper's, belongs to the column before it.
                belongs = cells[0].count(heading) == 1 or number - 1 in indices
                if not columns or (heading in columns and belongs):
                    indices.append(number)
            cells[0] = [HEADINGS.get(heading, heading) for heading in cells[0]]
            selected = [row for number, row in enumerate(cells) if number < 2 or not rows or row[0] in rows]
            return "".join(f"| {' | '.join(row[number] for number in indices)} |\n" for row in selected)
    raise BadConfig(
        f"no table of '{name}' has the columns {', '.join(columns)} and the rows {', '.join(rows) or 'all'}"
    )


def _list_records(results: Path) -> str:
    """Returns a table of the records with their date, commit and versions of scoring and of the metrics."""
    rows = [["record", "made", "commit", "scoring", "metrics"], ["---"] * 5]
    for path in sorted(results.rglob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        fields = record if isinstance(record, dict) else {}  # a speed record is a list of measurements
        made, versions = fields.get("provenance", {}), fields.get("versions", {})
        scoring = str(versions.get("scoring", "–"))
        if scoring not in {"–", str(SCORING_VERSION)}:
            scoring += ", earlier rules"
        name = path.relative_to(results).with_suffix("").as_posix()
        when, commit = made.get("time", "–")[:10], made.get("commit", "–")[:8]
        rows.append([f"`{name}`", when, commit, scoring, str(versions.get("metrics", "–"))])
    return _format_table(rows)


def _get_speed(record: Path, names: Sequence[str]) -> str:
    """Returns a table of the measurements of a speed record with these names, or of all, each beside its peer."""
    rows = [["measurement", "value", "unit", "peer", "ratio"], ["---", "--:", "---", "---", "--:"]]
    for figure in json.loads(record.read_text(encoding="utf-8")):
        if names and figure["name"] not in names:
            continue
        ratio = figure.get("ratio")
        peer = "" if ratio is None else f"{figure['peer']}, {_format(figure['peer_value'])}"
        rows.append(
            [f"`{figure['name']}`", _format(figure["value"]), figure["unit"], peer, f"{ratio:.1f}" if ratio else ""]
        )
    return _format_table(rows)


def _format_table(rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _format(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
