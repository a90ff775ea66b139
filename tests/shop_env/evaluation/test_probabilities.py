"""Probabilities of logged actions: who gives them, and what becomes of failures."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agents.baselines.rules import OracleAgent
from replay_sessions import demo_shop
from replay_sessions.foundation.errors import PromptTooLong
from replay_sessions.schema import Action, Click, Terminate
from replay_sessions.store import SessionStore
from shop_env.evaluation.entries import AgentToEvaluate, build_entry, prepare_agent, run_agent
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.results import errors_as_misses, results_table, summarise
from shop_env.evaluation.results_file import Entry
from shop_env.evaluation.scored_steps import EvaluationConfig
from shop_env.evaluation.waves import AgentSpec
from shop_env.metrics import step_metrics
from shop_env.observation import ContextConfig, Observation
from shop_env.replies import format_reply
from tests.scored_steps import scored_steps


class Planted:
    """Holds the same probabilities on every page; fails at the given steps."""

    def __init__(self, probabilities: dict[Action, float] | None, fails_at: Sequence[int] = ()) -> None:
        self.given = probabilities
        self.fails_at = fails_at

    def reset(self, *, seed: int | None) -> None:
        pass

    def act(self, observation: Observation) -> str:
        return format_reply("", Terminate())

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> list[Mapping[Action, float] | Exception] | None:
        if self.given is None:
            return None
        failure = ConnectionError("refused")
        return [failure if observation["step"] in self.fails_at else self.given for observation in observations]


# Logged in the planted store's test split: red, type "red kettle", terminate | red, blue.
RED, BLUE = Click(name="results.red"), Click(name="results.blue")


def entry_of(agent: Planted, store: SessionStore, folder: Path, *, probabilities: bool) -> Entry:
    planted = AgentToEvaluate(
        spec=AgentSpec(target="planted", label="planted"),
        name="planted",
        context=ContextConfig(),
        identity={"target": "planted"},
        build=lambda: agent,
        config=EvaluationConfig(likelihood=True),
        store=store,
        folder=folder,
        probabilities=probabilities,
    )
    prepare_agent(planted)
    return build_entry(planted, run_agent(planted, planted.config.keys(store), progress=False))[0]


def test_a_row_has_the_calibration_counted_by_hand(planted_store, tmp_path):
    agent = Planted({RED: 0.5, BLUE: 0.25, Terminate(): 0.25})
    row = entry_of(agent, planted_store, tmp_path, probabilities=True).row
    # p = 0.5 five times, of which 2 came true; p = 0.25 ten times, 2; the typed text, p = 0, once, 1.
    assert row.figures["calibration_error"].value == pytest.approx((0.5 + 0.5 + 1) / 5)
    # p = 0.5 five times, right twice.
    assert row.figures["top1_calibration_error"].value == pytest.approx(0.1)
    # red, twice; terminate and blue; the typed text.
    assert row.figures["brier"].value == pytest.approx((2 * 0.375 + 2 * 0.875 + 1.375) / 5)
    nll = -(2 * math.log(0.5) + 2 * math.log(0.25) + math.log(1e-6)) / 5
    heading, _, cells = (line.split("|") for line in results_table([row]).markdown().splitlines() if "|" in line)
    shown = dict(zip(map(str.strip, heading), map(str.strip, cells), strict=True))
    names = ("NLL", "ECE", "top-1 ECE", "Brier")
    assert [shown[name] for name in names] == [f"{nll:.2f}", "0.40", "0.10", "0.78"]


def test_a_step_that_does_not_fit_has_probability_0(planted_store, tmp_path):
    class Short(Planted):
        def act(self, observation: Observation) -> str:
            if observation["step"] in self.fails_at:
                raise PromptTooLong("a long page")
            return super().act(observation)

    row = entry_of(Short({RED: 1.0}, fails_at=(2,)), planted_store, tmp_path, probabilities=True).row
    assert row.figures["brier"].value == pytest.approx((1 + 2 + 1) / 5)  # the typed text, terminate, blue
    assert row.figures["nll"].value == pytest.approx(-3 * math.log(1e-6) / 5)


def test_a_row_without_probabilities_has_neither_figures_nor_columns_of_them(planted_store, tmp_path):
    agent = Planted({RED: 1.0})
    row = entry_of(agent, planted_store, tmp_path, probabilities=False).row
    assert not row.figures.keys() & {"nll", "calibration_error", "brier"}
    assert not {column.heading for column in results_table([row]).columns} & {"NLL", "ECE", "Brier"}


def test_a_failure_costs_its_own_step_and_is_no_score(planted_store):
    agent = Planted({RED: 1.0}, fails_at=(2,))
    records = evaluate(agent, planted_store, "test", likelihood=True)
    assert [record.error for record in records if record.error] == ["ConnectionError: refused"] * 2
    assert [record.logged_probability for record in records] == [1.0, None, 0.0, 1.0, None]
    assert step_metrics(records)["errors"] == 2
    assert all(record.reply is record.predicted is record.reward is None for record in records if record.error)


def test_steps_without_probabilities_are_errors_if_other_steps_have_some(planted_store):
    class WhereSure(Planted):
        def probabilities(
            self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
        ) -> list[Mapping[Action, float] | Exception] | None:
            return None if observations[0]["step"] > 1 else [{RED: 1.0}] * len(observations)

    agent = WhereSure({RED: 1.0})
    weighed = evaluate(agent, planted_store, "test", likelihood=True)
    assert [record.error is None for record in weighed] == [True, False, False, True, False]
    assert not summarise(weighed, label="").ranked


def test_an_agent_without_probabilities_keeps_its_records(planted_store):
    agent = Planted(None)
    records = evaluate(agent, planted_store, "test")
    assert evaluate(agent, planted_store, "test", likelihood=True) == records
    assert "NLL" not in results_table([summarise(records, label="planted")]).markdown()


def test_the_oracle_has_the_likelihood_of_the_shoppers_themselves(demo_store):
    agent = OracleAgent()
    records = evaluate(agent, demo_store, "test", likelihood=True)
    own = [
        demo_shop.action_probabilities(step.observation)[Click(name=step.logged.name)]
        if isinstance(step.logged, Click)
        else demo_shop.action_probabilities(step.observation)[step.logged]
        for step in scored_steps(demo_store, "test")
    ]
    assert [record.logged_probability for record in records] == own
    assert step_metrics(records)["nll"] == pytest.approx(-sum(map(math.log, own)) / len(own))


def test_an_agent_gains_nothing_by_failing_where_it_is_wrong(planted_store):
    """With errors counted as misses, a silent agent gained reward, because an error had none."""
    complete, silent = Planted({RED: 0.5, BLUE: 0.5}), Planted({RED: 0.5, BLUE: 0.5}, fails_at=(2, 3))
    counted = step_metrics(errors_as_misses(evaluate(silent, planted_store, "test", likelihood=True)))
    full = step_metrics(evaluate(complete, planted_store, "test", likelihood=True))
    assert counted["steps"] == full["steps"] == 5
    # An error leaves at no step: too late wherever the shopper left, and never too early.
    compared = counted.keys() & full.keys() - {"steps", "sessions", "errors", "unscored_targets", "stop_too_early"}
    lower_is_better = {"nll", "stop_brier", "stop_too_late", "invalid_rate"}
    assert lower_is_better < compared
    for name in compared:
        assert (counted[name] >= full[name]) if name in lower_is_better else (counted[name] <= full[name]), name
    assert counted["mean_reward"] < full["mean_reward"]
