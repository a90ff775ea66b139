"""Builds the report's tables: differences, outcomes, confusion, reward, kinds of action; and its rationales and texts.

page.py draws each Table, and --tables writes it.

Rows are ranked by `sorted_rows`, as in all tables. Each row is compared, step by step, with the best row that is no
reference. A reference, such as the demo shop's own policy, knows what no agent can know.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, compress, product

from agents.llm_grpo.training_log import COMPARED, read_training, training_sentences
from benchmarks.report.evidence import OUTCOMES, RIGHT, Evidence, Judged, JudgedStep, terms_of
from replay_sessions.foundation.progress import track
from replay_sessions.foundation.table import Cell, Column, Estimate, Table, columns, format_cell
from shop_env.evaluation.comparing import Comparison, adjusted, compare_records
from shop_env.evaluation.results import ResultRow, errors_as_misses
from shop_env.metrics.click_types import agreement_note
from shop_env.metrics.people import KIND_NAMES, kind_counts, people_figures
from shop_env.metrics.step_table import types_in
from shop_env.reward.score import TERM_NAMES, best_breakdown

EXACT = "exact_accuracy"
THE_LOG = "the shoppers"
UNREADABLE = "unreadable"
FIDELITY = (
    Column("kinds of action, JSD", "bits", "action_mix_divergence"),
    Column("pairs in a row, JSD", "bits", "transition_divergence"),
    Column("variety in a person", "ratio", "entropy_ratio"),
    Column("persons differ", "ratio", "user_icc_ratio"),
    Column("as theirs do", "ratio", "user_agreement"),
    Column("sessions covered", "ratio", "coverage"),
)
EXAMPLES = 12


def outcomes(judged: Judged) -> Table:
    """Builds the table of right answers and of each way of being wrong, as shares of an agent's steps."""
    counts = {label: Counter(step.outcome for step in steps) for label, steps in judged.items()}
    codes = [code for code in OUTCOMES if any(count[code] for count in counts.values())]
    return _agent_table(
        "outcomes",
        "What the agents did at each step, percent of all steps",
        [Column(OUTCOMES[code], "percent", code) for code in codes],
        {label: [count[code] / count.total() for code in codes] for label, count in counts.items()},
    )


def confusion(judged: Judged) -> Table:
    """Builds the table of counts of logged against predicted types, for each agent; steps with errors are left out."""
    rows: list[list[Cell]] = []
    types = types_in([step.record for steps in judged.values() for step in steps])
    predicted = (*types, UNREADABLE)
    for label, steps in judged.items():
        answered = [step.record for step in steps if step.record.error is None]
        counts = Counter(
            (record.logged["type"], record.predicted["type"] if record.predicted else UNREADABLE) for record in answered
        )
        rows += [[label, logged, *(counts[logged, kind] for kind in predicted)] for logged in types]
    title = "Logged type of action against the answered one, in steps"
    return Table(name="confusion", title=title, columns=columns("agent", "logged", count=predicted), rows=rows)


def reward_terms(evidence: Evidence, judged: Judged) -> Table:
    """Builds the table of each reward term's mean, with a row for the logged actions."""
    scored = {label: [step.terms for step in steps if step.terms is not None] for label, steps in judged.items()}
    reward = evidence.config.reward_config
    scored[THE_LOG] = [
        terms_of(best_breakdown(step.record.logged_action, reward)) for step in next(iter(judged.values()))
    ]
    means = {
        label: {term: sum(terms.get(term, 0.0) for terms in steps) / max(len(steps), 1) for term in TERM_NAMES}
        for label, steps in scored.items()
    }
    earning = [term for term in TERM_NAMES if any(mean[term] for mean in means.values())]
    return _agent_table(
        "reward_terms",
        "Mean points a step by term of the reward, self-certainty aside",
        [*(Column(TERM_NAMES[term], "ratio", term) for term in earning), Column("total", "ratio")],
        {label: [*(mean[term] for term in earning), sum(mean.values())] for label, mean in means.items()},
    )


def action_mix(evidence: Evidence) -> Table:
    """Builds the table of the shares of kinds of action, for the shoppers and for each agent."""
    every_step = errors_as_misses(evidence.records[evidence.labels[0]])
    counts = {THE_LOG: kind_counts(every_step)["logged"]}
    counts |= {label: kind_counts(evidence.records[label])["answered"] for label in evidence.labels}
    kinds = [kind for kind in KIND_NAMES if any(count[kind] for count in counts.values())]
    return _agent_table(
        "action_mix",
        "Kinds of action, percent of steps; clicks by what is clicked",
        [Column(kind.replace("_", " "), "percent", kind) for kind in kinds],
        {label: [count[kind] / max(sum(count.values()), 1) for kind in kinds] for label, count in counts.items()},
        agreement_note(evidence.records[evidence.labels[0]]),
    )


def fidelity(evidence: Evidence) -> Table:
    """Builds the table of the distances between each agent's mix of actions and the shoppers', on the logged pages."""
    figures = {label: people_figures(evidence.records[label]) for label in evidence.labels}
    cells = {label: [getattr(of_agent, column.name) for column in FIDELITY] for label, of_agent in figures.items()}
    informative = [any(values[index] is not None for values in cells.values()) for index in range(len(FIDELITY))]
    return _agent_table(
        "fidelity",
        "Jensen-Shannon divergence (base 2) from the shoppers' own actions, 0 if alike; then, 1 if as people: how "
        "varied one person is, how much persons differ, whether in the same way, sessions covered; pages are the "
        "logged ones",
        [*compress(FIDELITY, informative)],
        {label: [*compress(values, informative)] for label, values in cells.items() if values[0] is not None},
        agreement_note(evidence.records[evidence.labels[0]]),
    )


def _agent_table(
    name: str, title: str, numbers: Sequence[Column], cells: Mapping[str, Sequence[Cell]], note: str | None = None
) -> Table:
    rows, notes = [[label, *row] for label, row in cells.items()], [note] if note else []
    return Table(name=name, title=title, columns=[Column("agent"), *numbers], rows=rows, notes=notes)


def sample_rationales(judged: Judged) -> list[list[JudgedStep]]:
    """Returns up to EXAMPLES steps with a rationale, evenly spread over the split, each with every agent's answer."""
    answers: dict[tuple[str, int], list[JudgedStep]] = {}
    for step in chain.from_iterable(judged.values()):
        answers.setdefault(step.record.key, []).append(step)
    explained = [steps for steps in answers.values() if any(step.record.predicted_rationale for step in steps)]
    count = min(EXAMPLES, len(explained))
    return [explained[int((number + 0.5) * len(explained) / count)] for number in range(count)]


def leader(evidence: Evidence) -> ResultRow | None:
    """Returns the best ranked row that is no reference, else the best reference; None if no row is ranked."""
    agents = [row for row in evidence.rows if row.ranked and not row.known and row.label in evidence.records]
    return next((row for row in agents if row.label not in evidence.references), agents[0] if agents else None)


def differences(evidence: Evidence) -> list[Comparison]:
    """Compares each row with the best row, then adds the run's own comparisons; steps without a reply are misses."""
    best, config, training = leader(evidence), evidence.config, read_training(evidence.log)
    recorded = training.comparisons if training else []
    if best is None:
        return recorded
    others = [label for label in evidence.labels if label != best.label]
    records = {label: errors_as_misses(steps) for label, steps in evidence.records.items()}
    compared = [
        compare_records(records, label, best.label, metric, cluster=config.cluster, preset=config.metrics)
        for label, metric in track(list(product(others, COMPARED)), "differences")
    ]
    pairs = {(test.first, test.second, test.metric) for test in compared}
    return adjusted(compared + [test for test in recorded if (test.first, test.second, test.metric) not in pairs])


def rivals_of(evidence: Evidence, best: ResultRow, compared: Sequence[Comparison]) -> list[Comparison]:
    """Returns the differences of the other agents' exact match from the best one's, the nearest first."""
    tests = (test for test in compared if (test.second, test.metric) == (best.label, EXACT))
    agents = (test for test in tests if test.first not in evidence.references)
    return sorted(agents, key=lambda test: -test.difference)


def best_if_significant(evidence: Evidence, compared: Sequence[Comparison]) -> str | None:
    """Returns the label of the agent whose exact match is significantly above all others'; None if there is none."""
    best = leader(evidence)
    rivals = [] if best is None else rivals_of(evidence, best, compared)
    return best.label if best and rivals and all(test.sign < 0 for test in rivals) else None


def headline(evidence: Evidence, compared: Sequence[Comparison], judged: Judged) -> list[str]:
    """Returns the page's title, then its paragraphs: the measurement, comparisons, kinds of misses, training."""
    best = leader(evidence)
    if best is None:
        return ["No agent answered every step, so none is ranked."]
    exact = best.figures.get(EXACT)
    if exact is None:
        return ["The log knows no step's complete action, so nothing can match it exactly."]
    weighting = f" ({evidence.weighting}; misses are of steps as logged)" if evidence.weighting else ""
    interval = f"; 95% interval {format_cell(exact, 'percent').partition(' ')[2]}" if exact.low is not None else ""
    return [
        _title(evidence, best, exact, rivals_of(evidence, best, compared)),
        "Exact match is the share of steps at which every field of the prediction equals the logged "
        f"action{weighting}. Measured on {best.steps:,} steps{interval}.",
        " ".join(_comparisons(evidence, best, [test for test in compared if test.second == best.label])),
        *_misses(judged[best.label]),
        *list(training_sentences(evidence.log))[-1:],
    ]


def _title(evidence: Evidence, best: ResultRow, exact: Estimate, rivals: Sequence[Comparison]) -> str:
    value = f"{format_cell(exact.value, 'percent')}%"
    baselines = evidence.baselines - evidence.references
    is_baseline = best.label in baselines
    role = "The baseline " if is_baseline and any(label not in evidence.baselines for label in evidence.labels) else ""
    ranked = (row for row in evidence.rows if row.ranked and row.label in baselines)
    second = None if is_baseline else next(ranked, None)
    figure = second and second.figures.get(EXACT)
    beside = (
        f"; the best baseline, {second.label}: {format_cell(figure.value, 'percent')}%" if second and figure else ""
    )
    level = [test.first for test in rivals if test.sign == 0]
    unsure = f"; not significantly above {'; '.join(level)}" if level else ""
    return f"{role}{best.label}: {value} exact match{beside}{unsure}."


def _comparisons(evidence: Evidence, best: ResultRow, against: Sequence[Comparison]) -> Iterator[str]:
    """Yields sentences on the best agent minus the next, ties, a higher macro-F1, and the shoppers' policy."""
    agents = [test for test in against if test.first not in evidence.references]
    if rivals := rivals_of(evidence, best, against):
        nearest, *others = rivals
        tests = [test for test in agents if test.first == nearest.first]
        yield f"{best.label} minus {nearest.first}: {' and '.join(map(_ahead, tests))}."
        if tied := [test.first for test in others if test.p_value is not None and not test.significant]:
            yield f"Not significantly different either: {'; '.join(tied)}."
    above = [test.first for test in agents if test.metric == "type_f1_macro" and test.sign > 0]
    if above:
        yield f"Significantly higher macro-F1: {'; '.join(above)}."
    references = [test for test in against if test.first in evidence.references and test.metric == EXACT]
    if references:
        most = max(references, key=lambda comparison: comparison.difference)
        yield f"The shoppers' own policy ({most.first}) minus {best.label}: {most.text()}{_unless_significant(most)}."


def _ahead(test: Comparison) -> str:
    low, high = (None if end is None else -end for end in (test.high, test.low))
    points = format_cell(Estimate(-test.difference, low, high), "difference")
    return f"{points} points of {COMPARED[test.metric]}{_unless_significant(test)}"


def _unless_significant(comparison: Comparison) -> str:
    return "" if comparison.significant else f" ({comparison.verdict})"


def _misses(judged: Sequence[JudgedStep]) -> list[str]:
    wrong = Counter(step.outcome for step in judged if step.outcome not in (RIGHT, "unknown"))
    total = sum(wrong.values())
    if not total:
        return []
    parts = [f"{OUTCOMES[outcome]} {100 * count / total:.0f}%" for outcome, count in wrong.most_common(3)]
    return [f"Of its {total:,} misses: {'; '.join(parts)}."]


def differences_table(comparisons: Sequence[Comparison], over: str) -> Table:
    """Builds the table of all differences; `over` names the unit of the intervals, users or sessions."""
    return Table(
        name="differences",
        title="Paired differences on the same steps",
        columns=[
            Column("agent", name="first"),
            Column("minus", name="second"),
            Column("metric"),
            Column("points", "difference", "difference"),
            Column("p", "p"),
            Column("Holm p", "p", "holm_p"),
            Column("verdict"),
        ],
        rows=[
            [
                *(comparison.first, comparison.second, COMPARED.get(comparison.metric, comparison.metric)),
                *(comparison.estimate, comparison.p_value, comparison.holm_p_value, comparison.verdict),
            ]
            for comparison in comparisons
        ],
        notes=[
            f"In brackets 95% intervals over {over}. p: t test over {over}, beside it adjusted for the metrics of the "
            "same two agents (Holm); significant: adjusted p ≤ 0.05."
        ],
    )
