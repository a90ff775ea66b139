"""What people.json holds, and all its metrics (lines.toml) as one table with the people and an agent in each column."""

import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any

import msgspec

from replay_sessions.foundation.table import Cell, Table, columns, format_cell
from shop_env.evaluation.comparing import Comparison
from shop_env.evaluation.results import difference_unit
from shop_env.metrics.action_likelihood import PersonaPicks
from shop_env.metrics.people import PEOPLE_DIFFER, PeopleFigures, StylisedFacts
from shop_env.metrics.populations import ScaledDistance
from shop_env.metrics.skill import Calibration

THE_LOG = "the people"


class SkillFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent's probabilities know; see shop_env/metrics/skill.py."""

    bits_saved: float
    sharpness: float
    calibration: Calibration
    hits: dict[str, float | None]
    will_buy: list[float | None]


class PersonaFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the persona is worth; see benchmarks/people/measuring.py.

    Attributes:
        picks: None without probabilities.
        worth: Matched less shuffled, by metric.
    """

    picks: PersonaPicks | None
    worth: dict[str, Comparison]


class PeopleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent.

    Attributes:
        coverage: The share of steps with a reply; all else is of these.
        distances: By base (`uniform`, `train`) and what is compared.
        clicked_rank: The distance of ranks of clicked products, its base a product of the page at random.
        facts, rank_curve: Of what it answered.
        skill: None where it gives no probabilities.
        persona: None where no shuffled run of it was given.
    """

    label: str
    coverage: float
    people: PeopleFigures
    two_sample_auc: float | None
    distances: dict[str, dict[str, ScaledDistance | None]]
    clicked_rank: ScaledDistance | None
    facts: StylisedFacts
    rank_curve: list[float]
    skill: SkillFigures | None = None
    persona: PersonaFigures | None = None


class LogRow(msgspec.Struct, frozen=True, kw_only=True):
    """The people themselves, on the same steps."""

    sessions: int
    users: int
    facts: StylisedFacts
    rank_curve: list[float]


def people_table(log: LogRow, rows: Sequence[PeopleRow], title: str = "", notes: Sequence[str] = ()) -> Table:
    """Every metric that an agent or the people have."""
    agents = [msgspec.to_builtins(row) for row in rows]
    people = {"log": msgspec.to_builtins(log), "first": agents[0]}
    file = resources.files("benchmarks.people") / "lines.toml"
    lines: list[list[Cell]] = [
        [line["metric"], line["good"], _get(people, line.get("people", "")), *(_get(a, line["agent"]) for a in agents)]
        for line in tomllib.loads(file.read_text(encoding="utf-8"))["lines"]
    ]
    personas = [row.persona for row in rows]
    chances = sorted({f"{persona.picks.chance:.2f}" for persona in personas if persona and persona.picks})
    chance = f" (chance {', '.join(chances)})" if chances else ""
    picks = [_get(agent, "persona.picks.rate") for agent in agents]
    lines.append([f"own persona picked by likelihood{chance}", "1", None, *picks])
    for metric in dict.fromkeys(metric for persona in personas if persona for metric in persona.worth):
        tests = [persona.worth.get(metric) if persona else None for persona in personas]
        unit = difference_unit(metric)
        texts = [f"{format_cell(test.estimate, unit)} ({test.verdict})" if test else None for test in tests]
        good = "less" if metric == "nll" else "more"
        lines.append([f"{metric}, own persona less another's", good, None, *texts])
    return Table(
        name="people",
        title=title,
        columns=columns("metric", "good is", ratio=(THE_LOG, *map(_heading, rows))),
        rows=[line for line in lines if any(cell is not None for cell in line[2:])],
        notes=[*notes, *_notes(rows)],
    )


def _heading(row: PeopleRow) -> str:
    """An agent that kept silent where it was unsure would look better: its coverage stands beside all its metrics."""
    return row.label if row.coverage == 1 else f"{row.label} (of {row.coverage:.0%} of the steps)"


def _notes(rows: Sequence[PeopleRow]) -> Iterator[str]:
    icc = rows[0].people.logged_user_icc
    if icc is not None and icc < PEOPLE_DIFFER:
        yield (
            f"No ICC ratio and no agreement of users: only {icc:.1%} of the variance of what these people do lies "
            f"between them, and what hardly differs (below {PEOPLE_DIFFER:.0%}) cannot be copied. The demo shop's "
            "shoppers have no habits that last; a log of real people is needed to measure the collapse of personas."
        )


def _get(record: Any, path: str) -> Any:
    """What a path of keys and indices leads to; None where it ends early."""
    for key in path.split("."):
        if isinstance(record, list):
            record = record[int(key)] if int(key) < len(record) else None
        else:
            record = record.get(key) if record else None
    return record
