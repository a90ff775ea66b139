"""Running an agent over a split: what is asked, in which order, and what becomes of failures."""

import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import agents
from replay_sessions.foundation.errors import AgentFailed, BadConfig
from replay_sessions.foundation.table import Estimate
from replay_sessions.schema import Click, Terminate, TypeAndSubmit
from replay_sessions.store import SessionStore
from shop_env.evaluation.answering import AdaptedAgent
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.results import (
    COLUMNS,
    ERRORS_AS_MISSES,
    KIND_COLUMNS,
    ResultRow,
    results_table,
    sorted_rows,
    summarise,
)
from shop_env.evaluation.scored_steps import draw_sessions
from shop_env.evaluation.steps_file import StepsFile, prepare
from shop_env.evaluation.waves import step_seed
from shop_env.metrics import StepRecord, record_step
from shop_env.observation import Observation
from shop_env.replies import format_reply
from shop_env.reward import RewardConfig
from tests.processes import run_python
from tests.scored_steps import scored_steps
from tests.shop_env.planted import answer, random_sessions, ten_steps


class Scripted:
    """Replies from a list, over and over; an exception in it is raised."""

    def __init__(self, *replies: str | BaseException) -> None:
        self.replies = replies
        self.seen: list[Observation] = []
        self.seeds: list[int | None] = []

    def reset(self, *, seed: int | None) -> None:
        self.seeds.append(seed)

    def act(self, observation: Observation) -> str:
        self.seen.append(observation)
        reply = self.replies[(len(self.seen) - 1) % len(self.replies)]
        if isinstance(reply, BaseException):
            raise reply
        return reply


class Batched(Scripted):
    """The same in batches."""

    def __init__(self, *replies: str | BaseException) -> None:
        super().__init__(*replies)
        self.batches: list[int] = []

    def act_batch(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> Sequence[str | Exception]:
        self.batches.append(len(observations))
        self.seeds += seeds
        return [self.act(observation) for observation in observations]


RED = format_reply("red", Click(name="results.red"))
BLUE = format_reply("blue", Click(name="results.blue"))
TYPED = format_reply("search", TypeAndSubmit(name="search", text="red kettle"))
LEAVE = format_reply("done", Terminate())


def test_the_first_action_is_scored_only_when_asked_for(planted_store):
    assert [r.step_index for r in evaluate(Scripted(RED), planted_store, "test")] == [1, 2, 3, 1, 2]
    every = evaluate(Scripted(RED), planted_store, "test", first_action=True)
    assert [r.step_index for r in every] == [0, 1, 2, 3, 0, 1, 2]


def test_a_failing_step_is_an_error_and_no_score_of_zero(planted_store):
    records = evaluate(Scripted(RED, AgentFailed("server down"), ValueError("a bug")), planted_store, "test")
    assert [record.error for record in records] == [
        None,
        "AgentFailed: server down",
        "ValueError: a bug",
        None,
        "AgentFailed: server down",
    ]
    row = summarise(records, label="flaky")
    assert (row.steps, row.errors, row.first_error) == (2, 3, "AgentFailed: server down")
    assert row.figures["exact_accuracy"].value == 1.0


def test_an_agent_that_never_answers_has_a_row_without_figures(planted_store):
    row = summarise(evaluate(Scripted(AgentFailed("down")), planted_store, "test"), label="down")
    assert (row.steps, row.errors, row.ranked) == (0, 5, False)
    assert {name: figure.value for name, figure in row.figures.items()} == {"coverage": 0.0, ERRORS_AS_MISSES: 0.0}
    lines = results_table([row]).markdown().splitlines()
    assert lines[2] == "| down (not ranked) | – | – | – | – | – | – | – | – | 0.0 | 0.0 | 5 | 0 |"


def test_batches_run_across_sessions_and_give_the_same_records(planted_store):
    agent = Batched(RED, RED, TYPED, TYPED, BLUE)
    batched = evaluate(agent, planted_store, "test")
    assert agent.batches == [2, 2, 1]  # the next step of each session; the first has three scored steps
    assert batched == evaluate(Scripted(RED, TYPED, BLUE), planted_store, "test")


def evaluate_kept(store: SessionStore, file: Path, agent: Scripted | AdaptedAgent) -> list[StepRecord]:
    """Goes on where the file ends."""
    prepare(file, {"seed": 0}, {}, fresh=False, retry_errors=False)
    with StepsFile(file) as steps:
        return evaluate(agent, store, "test", steps=steps)


def test_a_stopped_evaluation_goes_on_with_the_batch_that_it_was_in(planted_store, tmp_path):
    asked = partial(evaluate_kept, planted_store, tmp_path / "steps.jsonl")

    class Whole(AdaptedAgent):
        reads_whole_sessions = True  # as the project's language models do

    straight = evaluate(Batched(RED, TYPED, BLUE, RED, LEAVE), planted_store, "test")
    with pytest.raises(KeyboardInterrupt):
        asked(Batched(RED, TYPED, BLUE, KeyboardInterrupt()))
    second = Batched(BLUE, RED, LEAVE)
    assert asked(second) == straight
    assert second.batches == [2, 1]
    lines = (tmp_path / "steps.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "steps.jsonl").write_bytes(b"".join(lines[:-2]))  # killed while the second batch was written
    third = Batched(RED, BLUE, LEAVE, TYPED, RED)
    assert asked(Whole(third)) == straight
    assert third.batches == [5], "batches are those of the run that was never stopped"
    never = Batched(KeyboardInterrupt())
    assert (asked(never), never.batches) == (straight, [])


def test_a_stopped_evaluation_asks_missing_steps_alone_one_by_one(planted_store, tmp_path):
    def asked(*replies: str | BaseException) -> tuple[list[StepRecord], int]:
        agent = Scripted(*replies)
        return evaluate_kept(planted_store, tmp_path / "steps.jsonl", agent), len(agent.seen)

    with pytest.raises(KeyboardInterrupt):
        asked(RED, AgentFailed("too long"), BLUE, KeyboardInterrupt())
    records, count = asked(RED, LEAVE)
    assert count == 2
    assert records == evaluate(Scripted(RED, AgentFailed("too long"), BLUE, RED, LEAVE), planted_store, "test")


def test_a_step_gets_the_same_seed_whatever_else_is_asked_and_however(planted_store):
    both, second, batched = Scripted(RED), Scripted(RED), Batched(RED)
    evaluate(both, planted_store, "test", seed=5)
    evaluate(second, planted_store, "test", seed=5, session_ids={"two"})
    evaluate(batched, planted_store, "test", seed=5)
    assert both.seeds == [step_seed(5, "one", index) for index in (1, 2, 3)] + second.seeds
    assert second.seeds == [step_seed(5, "two", index) for index in (1, 2)]
    assert sorted(batched.seeds) == sorted(both.seeds) != batched.seeds
    assert len({*both.seeds, step_seed(6, "one", 1)}) == 6
    assert step_seed(None, "one", 1) is None


def test_the_observation_never_holds_the_action_to_be_predicted(planted_store):
    for step in scored_steps(planted_store, "test"):
        assert len(step.observation["history"]) == step.step_index


def test_sessions_can_be_limited(planted_store):
    drawn = [
        {record.session_id for record in evaluate(Scripted(RED), planted_store, "test", seed=seed, sessions=1)}
        for seed in range(20)
    ]
    assert all(len(sessions) == 1 for sessions in drawn) and len(set().union(*drawn)) > 1


def test_drawn_sessions_are_random_and_in_order_and_more_of_them_hold_fewer():
    ids = [f"s{number:03}" for number in range(300)]
    few, many, other = draw_sessions(ids, 30, 0), draw_sessions(ids, 100, 0), draw_sessions(ids, 100, 1)
    assert few == sorted(few) and set(few) < set(many)
    assert 20 <= len({*many} & {*other}) <= 50
    assert 0.3 < np.mean([ids.index(one) < 150 for one in many]) < 0.7
    assert draw_sessions(ids, None, 0) == draw_sessions(ids, 1000, 0) == ids


def test_an_empty_split_is_a_bad_call(planted_store):
    with pytest.raises(BadConfig, match="holds no session"):
        evaluate(Scripted(RED), planted_store, "validation")


def test_rows_are_sorted_by_exact_accuracy_and_shown_with_intervals(planted_store):
    rows = [
        summarise(evaluate(agent, planted_store, "test"), label=label)
        for label, agent in (("leaves", Scripted(LEAVE)), ("red [bold]|", Scripted(RED)))
    ]
    rows = sorted_rows(rows)
    assert [row.label for row in rows] == ["red [bold]|", "leaves"]
    table = results_table(rows)
    lines = table.markdown().splitlines()
    assert lines[2].startswith("| red [bold]\\| | 40.0 | 60.0 |")
    assert len(table.rows) == 2 and "fewer than 8 users" in lines[-1]


@pytest.mark.parametrize(
    ("metrics", "further"),
    [
        ("shop_r1", []),
        ("customer_r1,text=similar", ["fine_type_accuracy", "click_type_f1_weighted", "outcome_f1_weighted"]),
        ("opera", ["click_type_f1_weighted", "outcome_f1_weighted"]),
    ],
)
def test_a_papers_metrics_bring_the_columns_of_its_tables(metrics, further):
    row = summarise(answer(random_sessions(8, 1), lambda s, i: s.steps[i].action), label="right", preset=metrics)
    names = [column.name for column in results_table([row], metrics=metrics).columns]
    assert [name for name in names if name in KIND_COLUMNS] == further


@pytest.mark.parametrize(("reasons", "share"), [(["", " ", "I"], "66.7"), ([""] * 3, None), (["I"] * 3, None)])
def test_the_share_of_empty_rationales_is_a_column_where_some_are_written(reasons, share):
    session = ten_steps()[1]
    replies = [format_reply(why, step.action) for why, step in zip(reasons, session.steps[1:], strict=True)]
    records = [record_step(session, index, reply, RewardConfig()) for index, reply in enumerate(replies, start=1)]
    table = results_table([summarise(records, label="policy")])
    cells = dict(zip((column.name for column in table.columns), table.texts()[0], strict=True))
    assert cells.get("empty_rationale_rate") == share


@pytest.mark.parametrize(("reward", "digits"), [(RewardConfig(kind="binary", exact_points=1), 3), (RewardConfig(), 1)])
def test_small_rewards_have_three_digits(reward, digits):
    session = ten_steps()[1]
    replies = [format_reply("", session.steps[number].action) for number in (1, 1, 1)]
    records = [record_step(session, index, each, reward) for index, each in enumerate(replies, start=1)]
    table = results_table([summarise(records, label="policy")])
    cells = dict(zip((column.name for column in table.columns), table.texts()[0], strict=True))
    assert len(cells["mean_reward"].partition(".")[2]) == digits


def test_another_package_called_agents_is_found_out(tmp_path):
    # openai-agents installed over ours: its __init__ in place of ours, our modules beside it.
    impostor = tmp_path / "agents"
    impostor.mkdir()
    ours = str(Path(agents.__file__).parent)
    (impostor / "__init__.py").write_text(f"__path__.append({ours!r})\n", encoding="utf-8")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import agents.registry"
    done = run_python("-c", code, tmp_path)
    assert "ImportError" in done.stderr
    assert "openai-agents" in done.stderr


@pytest.mark.parametrize("width", [80, 118, 119, 140])
def test_no_figure_is_cut_off_on_a_narrow_terminal(width):
    figures = dict.fromkeys(COLUMNS, Estimate(0.4512, 0.3011, 0.7)) | {"mean_reward": Estimate(654.8, 583.3, 733.4)}
    row = ResultRow(label="runs/demo/a_long_name?temperature=0", figures=figures, steps=14500, sessions=3, errors=3)
    console = Console(width=width, file=io.StringIO())
    console.print(results_table([row]))
    shown = console.file.getvalue()
    assert "…" not in shown
    assert all(text in shown for text in ("[30.1, 70.0]", "[583.3, 733.4]", "invalid", "14,500"))
    assert "terminate" in shown
