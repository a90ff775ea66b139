"""Values of the report against counts by hand; its tables as CSV and LaTeX."""

import csv
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from benchmarks.leaderboard.ranking import rank
from benchmarks.report.__main__ import main
from benchmarks.report.evidence import Evidence, JudgedStep, judge, read_evidence
from benchmarks.report.paper_table import chosen_columns, latex_text, paper_latex
from benchmarks.report.step_tables import confusion, headline, outcomes, reward_terms
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.table import Estimate
from replay_sessions.schema import Session, Step, TypeAndSubmit
from replay_sessions.store import StoreWriter
from shop_env.evaluation.comparing import Comparison
from shop_env.evaluation.results import WITH_INTERVAL, ResultRow
from shop_env.evaluation.results_file import Entry, read_log
from shop_env.evaluation.waves import AgentSpec
from shop_env.metrics import StepRecord

CLICK, OTHER = {"type": "click", "name": "a"}, {"type": "click", "name": "b"}
TYPED, LEFT = {"type": "type_and_submit", "name": "q", "text": "red kettle"}, {"type": "terminate"}
UNKNOWN = {"type": "click", "name": ""}  # a click whose target was not logged


def record(logged: dict[str, str], predicted: dict[str, str] | None, **more: object) -> StepRecord:
    return StepRecord(
        session_id="s", user_id="u", step_index=1, step_count=3, logged=logged, predicted=predicted, **more
    )


def evidence_of(board: Path, records: list[StepRecord], **more: object) -> Evidence:
    """The board's, with one agent that has these records."""
    return replace(read_evidence(board), records={"one": records}, **more)


@pytest.mark.parametrize(
    ("logged", "predicted", "outcome"),
    [
        (CLICK, CLICK, "right"),
        (CLICK, OTHER, "other_element"),
        (CLICK, TYPED, "typed"),
        (CLICK, LEFT, "left_early"),
        (TYPED, TYPED, "right"),
        (TYPED, {**TYPED, "text": "blue kettle"}, "other_text"),
        (TYPED, {**TYPED, "name": "other"}, "other_text"),
        (TYPED, CLICK, "clicked"),
        (TYPED, LEFT, "left_early"),
        (LEFT, LEFT, "right"),
        (LEFT, CLICK, "stayed"),
        (LEFT, TYPED, "stayed"),
        (CLICK, None, "unreadable"),
        (UNKNOWN, CLICK, "unknown"),
        (UNKNOWN, LEFT, "left_early"),
    ],
)
def test_each_way_to_be_wrong_has_its_name(logged, predicted, outcome, board):
    (judged,) = judge(evidence_of(board, [record(logged, predicted)]), "one")
    assert judged.outcome == outcome


def test_a_step_without_a_reply_is_neither_right_nor_wrong_in_a_way(board):
    answered, failed = record(CLICK, CLICK), record(CLICK, None, error="TimeoutError")
    judged = judge(evidence_of(board, [failed, answered]), "one")
    assert [step.outcome for step in judged] == ["no_reply", "right"]
    assert judged[0].terms is None


def test_shares_and_counts_of_steps_are_those_counted_by_hand(board):
    records = [record(CLICK, CLICK), record(CLICK, LEFT), record(TYPED, CLICK), record(LEFT, None)]
    evidence = evidence_of(board, records)
    judged = {"one": judge(evidence, "one")}
    assert dict(
        zip(
            [column.name or column.heading for column in outcomes(judged).columns],
            outcomes(judged).rows[0],
            strict=True,
        )
    ) == {
        "agent": "one",
        "right": 0.25,
        "left_early": 0.25,
        "clicked": 0.25,
        "unreadable": 0.25,
    }
    assert confusion(judged).rows == [
        ["one", "click", 1, 0, 1, 0],
        ["one", "type_and_submit", 1, 0, 0, 0],
        ["one", "terminate", 0, 0, 0, 1],
    ]


def test_mean_terms_add_up_to_the_mean_reward_of_the_table(board):
    evidence = read_evidence(board)
    judged = {label: judge(evidence, label) for label in evidence.labels}
    totals = {row[0]: row[-1] for row in reward_terms(evidence, judged).rows}
    for label in evidence.labels:
        assert totals[label] == pytest.approx(evidence.log.entry(label).row.figures["mean_reward"].value)
    assert max(totals.values()) == totals["the shoppers"]  # nobody earns more than the log


def compared(
    difference: float, low: float, high: float, first: str = "second", metric: str = "exact_accuracy"
) -> Comparison:
    return Comparison(
        first=first,
        second="first",
        metric=metric,
        difference=difference,
        low=low,
        high=high,
        p_value=0.5 if low <= 0 <= high else 0.01,
        clusters=10,
        steps=100,
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            [compared(-0.05, -0.08, -0.02)],
            ["first: 60.0% exact match.", "first minus second: +5.0 [2.0, 8.0] points of exact match."],
        ),
        (
            [compared(-0.01, -0.03, 0.01)],
            ["first minus second: +1.0 [−1.0, 3.0] points of exact match (not significant)."],
        ),
        (
            [compared(-0.05, -0.08, -0.02), compared(0.04, 0.02, 0.06, metric="type_f1_macro")],
            [
                "minus second: +5.0 [2.0, 8.0] points of exact match and −4.0 [−6.0, −2.0] points of macro-F1.",
                "Significantly higher macro-F1: second.",
            ],
        ),
        (
            [compared(-0.05, -0.08, -0.02), compared(0.2, 0.1, 0.3, "policy")],
            ["The shoppers' own policy (policy) minus first: +20.0 [10.0, 30.0]"],
        ),
        (
            [msgspec.structs.replace(compared(-0.05, -0.08, -0.02), p_value=None)],
            ["points of exact match (not tested: fewer than 8 users)."],
        ),
    ],
)
def test_the_first_sentences_follow_the_intervals(found, said, board):
    sentences = " ".join(headline(*made_up(board, found)))
    for part in [*said, "95% interval [58.0, 62.0]", "Of its 1 misses: clicked another element 100%."]:
        assert part in sentences


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("prompting", "random", "first: 60.0% exact match; the best baseline, second: 55.0%."),
        ("random", "prompting", "The baseline first: 60.0% exact match."),
        ("prompting", "prompting", "first: 60.0% exact match."),
    ],
)
def test_the_title_names_the_best_baseline(first, second, said, board):
    assert headline(*made_up(board, [], first, second))[0] == said


def test_a_title_without_a_significant_difference_says_so_and_nothing_is_bold(board):
    for low, high, title_ends, bold in (
        (-0.08, -0.02, "match.", 1),
        (-0.08, 0.02, "match; not significantly above second.", 0),
    ):
        evidence, found, judged = made_up(board, [compared(-0.03, low, high)], second="prompting")
        assert headline(evidence, found, judged)[0].endswith(title_ends)
        assert paper_latex(evidence, found, chosen_columns(["exact_accuracy", "invalid_rate"])).count("textbf") == bold


def test_the_page_states_weights_of_steps_and_units_of_intervals(store_path, tmp_path):
    options = {"store": str(store_path), "split": "all", "metrics": "lu_2025", "cluster": "session"}
    rank(agents=["random,majority"], out=str(tmp_path), **options)
    assert main(f"{tmp_path} --out {tmp_path}/report.html".split()) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("(each session counts the same") == 2
    assert "over sessions" in page and "over users" not in page


def made_up(
    board: Path, found: list[Comparison], first: str = "random", second: str = "random"
) -> tuple[Evidence, list[Comparison], dict[str, list[JudgedStep]]]:
    """A board of two agents and the shoppers' own policy."""
    log = read_log(board)

    def entry(label: str, exact: float, target: str) -> Entry:
        figures = {"exact_accuracy": Estimate(exact, exact - 0.02, exact + 0.02)}
        row = ResultRow(label=label, figures=figures, steps=100, sessions=10)
        return msgspec.structs.replace(log.entries[0], spec=AgentSpec(target=target, label=label), row=row)

    entries = [entry("first", 0.6, first), entry("second", 0.55, second), entry("policy", 0.8, "oracle")]
    records = {label: [record(CLICK, OTHER)] for label in ("first", "second", "policy")}
    log = msgspec.structs.replace(log, entries=entries, ceilings=[])
    evidence = replace(read_evidence(board), log=log, records=records)
    return evidence, found, {"first": [JudgedStep(record(CLICK, OTHER), "other_element", None)]}


def test_csv_holds_the_figures_of_results_json_with_all_digits(board, tmp_path):
    assert main(f"{board} --out {tmp_path}/r.html --tables {tmp_path}".split()) == 0
    rows = {row.label: row for row in read_log(board).rows}
    with (tmp_path / "ranking.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["agent"] for line in lines} == rows.keys()
    for line in lines:
        for name, figure in rows[line["agent"]].figures.items():
            if name in line:
                assert float(line[name]) == figure.value
            if name in WITH_INTERVAL:
                assert (line[f"{name}_low"] or None) == (None if figure.low is None else str(figure.low))
    names = {file.name for file in tmp_path.iterdir()}
    assert "paper.tex" in names
    for table in ("ranking", "differences", "outcomes", "confusion", "reward_terms", "action_mix"):
        assert f"{table}.csv" in names


def test_the_table_for_a_paper_has_chosen_columns_and_half_intervals(board):
    evidence = read_evidence(board)
    lines = paper_latex(evidence, [], chosen_columns(["exact_accuracy", "invalid_rate"])).splitlines()
    rows = {cells[0]: cells[1:] for line in lines if (cells := line.removesuffix(r" \\").split(" & "))[1:]}
    best, oracle = evidence.log.entry("copy_match").row, evidence.log.entry("oracle?temperature=0.6").row
    exact = best.figures["exact_accuracy"]
    value, ends = f"{100 * exact.value:.1f}", f"[{100 * exact.low:.1f}, {100 * exact.high:.1f}]"
    assert rows[""] == [r"exact, \%", r"invalid, \%"]
    assert rows[r"copy\_match"] == [rf"{value} {{\scriptsize{ends}}}", "0.0"]
    assert rows["oracle?temperature=0.6"][0].startswith(f"{100 * oracle.figures['exact_accuracy'].value:.1f} ")
    rules = [place for place, line in enumerate(lines) if line == r"\midrule"]
    assert len(rules) == 2 and lines[rules[1] + 1].startswith(("oracle", "ceiling"))
    assert lines.count(r"\end{tabular}") == 1
    assert latex_text("[a|b]*") == r"{[}a\textbar{}b]{*}"
    with pytest.raises(BadConfig, match="names 'exact'"):
        chosen_columns(["exact"])


def test_a_reply_of_type_input_has_one_reward_in_report_and_rank(tmp_path):
    step = Step(page="<input name='q'>", action=TypeAndSubmit(name="q", text="tea", submitted=False))
    with StoreWriter(tmp_path / "store", source="test") as writer:
        writer.write(Session(session_id="s", user_id="u", source="test", steps=(step, step)))
    reply = '{"rationale": "", "action": {"type": "input", "name": "q", "text": "tea"}}'
    (tmp_path / "mine.py").write_text(f"def types(observation):\n    return {reply!r}\n", encoding="utf-8")
    board = tmp_path / "board"
    rank(agents=[f"types={tmp_path}/mine.py:types"], store=str(tmp_path / "store"), split="all", out=str(board))
    (judged,) = judge(read_evidence(board), "types")
    assert judged.terms and sum(judged.terms.values()) == judged.record.reward
