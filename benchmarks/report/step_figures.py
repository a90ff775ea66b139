"""What is counted over the answered steps: outcomes, confusion, terms of the reward, kinds of action, rationales.

Each function gives a Table; the page draws it, and --tables writes it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from agents.results import errors_as_misses
from benchmarks.report.evidence import Evidence
from benchmarks.report.judged_steps import OUTCOMES, JudgedStep, best_terms
from benchmarks.report.tables import Cell, Column, Table
from shop_env.metrics import ActionTrace, metric_preset, population_fidelity, trace_of
from shop_env.metrics.people import people_figures
from shop_env.metrics.step_table import ACTION_TYPES, FINE_TYPES, StepTable
from shop_env.reward.score import TERM_NAMES

__all__ = ["THE_LOG", "action_mix", "confusion", "fidelity", "outcomes", "reward_terms", "sample_rationales"]

Judged = Mapping[str, Sequence[JudgedStep]]
THE_LOG = "the shoppers"
UNREADABLE = "unreadable"
PREDICTED = (*ACTION_TYPES, UNREADABLE)
KINDS = (*FINE_TYPES, "invalid")
OF_PEOPLE = {
    "entropy_ratio": "variety in a person",
    "user_icc_ratio": "persons differ",
    "user_agreement": "as theirs do",
    "coverage": "sessions covered",
}
EXAMPLES = 12


def outcomes(judged: Judged) -> Table:
    """How often each agent was right, and in which way it was wrong, as shares of its steps."""
    met = [code for code in OUTCOMES if any(step.outcome == code for steps in judged.values() for step in steps)]
    columns = [Column("agent", "agent"), *(Column(code, OUTCOMES[code], "percent") for code in met)]
    rows: list[Sequence[Cell]] = []
    for label, steps in judged.items():
        counts = Counter(step.outcome for step in steps)
        rows.append([label, *(counts[code] / len(steps) for code in met)])
    return Table("outcomes", "What the agents did at each step, percent of all steps", columns, rows)


def confusion(judged: Judged) -> Table:
    """For each agent and each logged type, how many answers were of which type; errors left out."""
    columns = [
        Column("agent", "agent"),
        Column("logged", "logged"),
        *(Column(name, name, "count") for name in PREDICTED),
    ]
    rows: list[Sequence[Cell]] = []
    for label, steps in judged.items():
        answered = [step.record for step in steps if step.record.error is None]
        counts = Counter(
            (record.logged["type"], record.predicted["type"] if record.predicted else UNREADABLE) for record in answered
        )
        rows += [[label, logged, *(counts[logged, predicted] for predicted in PREDICTED)] for logged in ACTION_TYPES]
    return Table("confusion", "Logged type of action against the answered one, in steps", columns, rows)


def reward_terms(evidence: Evidence, judged: Judged) -> Table:
    """What each term gave on average, and what repeating the log would have earned."""
    means: dict[str, dict[str, float]] = {}
    for label, steps in judged.items():
        scored = [step.terms for step in steps if step.terms is not None]
        count = max(len(scored), 1)
        means[label] = {term: sum(terms.get(term, 0.0) for terms in scored) / count for term in TERM_NAMES}
    all_steps = next(iter(judged.values()))
    best = [best_terms(step.record, evidence.reward) for step in all_steps]
    means[THE_LOG] = {term: sum(terms.get(term, 0.0) for terms in best) / len(best) for term in TERM_NAMES}
    met = [term for term in TERM_NAMES if any(of_agent[term] for of_agent in means.values())]
    columns = [
        Column("agent", "agent"),
        *(Column(term, TERM_NAMES[term], "points") for term in met),
        Column("total", "total", "points"),
    ]
    rows: list[Sequence[Cell]] = [[label, *(of[term] for term in met), sum(of.values())] for label, of in means.items()]
    return Table("reward_terms", "Mean points a step by term of the reward, self-certainty aside", columns, rows)


def action_mix(evidence: Evidence) -> Table:
    """Which kinds of action people take on the logged pages, and which the agents answer there."""
    traces = {THE_LOG: _logged_traces(evidence)} | {label: _traces(evidence, label) for label in evidence.labels}
    shares = {label: Counter(kind for trace in of for kind in trace.kinds) for label, of in traces.items()}
    met = [kind for kind in KINDS if any(counts[kind] for counts in shares.values())]
    columns = [Column("agent", "agent"), *(Column(kind, kind.replace("_", " "), "percent") for kind in met)]
    rows: list[Sequence[Cell]] = [
        [label, *(counts[kind] / max(counts.total(), 1) for kind in met)] for label, counts in shares.items()
    ]
    return Table("action_mix", "Kinds of action, percent of steps; clicks by what is clicked", columns, rows)


def fidelity(evidence: Evidence) -> Table:
    """How far each agent's mix of actions is from people's, on the pages that these people saw."""
    columns = [
        Column("agent", "agent"),
        Column("action_mix_divergence", "kinds of action, JSD", "bits"),
        Column("transition_divergence", "pairs in a row, JSD", "bits"),
    ]
    people = {label: people_figures(evidence.records[label]) for label in evidence.labels}
    met = [name for name in OF_PEOPLE if any(getattr(one, name) is not None for one in people.values())]
    columns += [Column(name, OF_PEOPLE[name], "ratio") for name in met]
    logged = _logged_traces(evidence)
    rows: list[Sequence[Cell]] = []
    for label in evidence.labels:
        found = population_fidelity(logged, _traces(evidence, label))
        if found:
            of_people = [getattr(people[label], name) for name in met]
            rows.append([label, found[0].action_mix_divergence, found[0].transition_divergence, *of_people])
    caption = (
        "Jensen-Shannon divergence (base 2) from the shoppers' own actions, 0 if alike; then, 1 if as people: how "
        "varied one person is, how much persons differ, whether in the same way, sessions covered; pages are the "
        "logged ones"
    )
    return Table("fidelity", caption, columns, rows)


def _logged_traces(evidence: Evidence) -> list[ActionTrace]:
    return _traces(evidence, evidence.labels[0], logged=True)


def _traces(evidence: Evidence, label: str, *, logged: bool = False) -> list[ActionTrace]:
    """Sessions as kinds of action: those of the log, or those answered."""
    records = evidence.records[label]
    table = StepTable(errors_as_misses(records) if logged else records, metric_preset(evidence.counting.metrics))
    codes = table.logged_fine if logged else table.predicted_fine
    sessions: dict[str, list[tuple[int, str]]] = {}
    for record, code in zip(table.records, codes, strict=True):
        sessions.setdefault(record.session_id, []).append((record.step_index, KINDS[code]))
    traces = []
    for steps in sessions.values():
        breaks = [place for place in range(1, len(steps)) if steps[place][0] != steps[place - 1][0] + 1]
        traces.append(trace_of([kind for _, kind in steps], breaks=breaks))
    return traces


def sample_rationales(judged: Judged) -> list[list[JudgedStep]]:
    """Some steps, evenly spread over the split, each with every agent's answer: for reading, not for counting."""
    at: dict[tuple[str, int], list[JudgedStep]] = {}
    for steps in judged.values():
        for step in steps:
            at.setdefault((step.record.session_id, step.record.step_index), []).append(step)
    told = [answers for answers in at.values() if any(answer.record.predicted_rationale for answer in answers)]
    if not told:
        return []
    places = dict.fromkeys(round((number + 0.5) * len(told) / EXAMPLES - 0.5) for number in range(EXAMPLES))
    return [told[place] for place in places if 0 <= place < len(told)]
