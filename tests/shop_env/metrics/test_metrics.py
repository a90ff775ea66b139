"""Metrics by hand (all of them: test_planted_agents.py), and of random agents against scikit-learn."""

import random

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from shop_env.metrics import METRIC_PRESETS, MetricChoices, StepRecord, metric_preset, step_metrics
from shop_env.metrics.presets import MIX_TYPES
from shop_env.reward.click_types import click_type_of
from tests.shop_env.planted import answer, copy_the_log, random_action, random_sessions, ten_steps


def one_session(*actions: Action) -> list[Session]:
    steps = tuple(Step(page="p", action=action) for action in actions)
    return [Session(session_id="a", user_id="u", source="test", steps=steps)]


def test_mean_over_sessions_counts_every_session_alike():
    """Right in session a (4 steps) only: 4 of 10 steps, 1 of 3 sessions."""
    records = answer(ten_steps(), lambda s, i: s.steps[i].action if s.session_id == "a" else Click(name="x"))
    assert step_metrics(records)["exact_accuracy"] == pytest.approx(4 / 10)
    assert step_metrics(records, MetricChoices(mean="sessions"))["exact_accuracy"] == pytest.approx(1 / 3)


def test_errors_are_counted_and_not_scored():
    records = answer(ten_steps(), lambda s, i: None if s.session_id == "a" else s.steps[i].action)
    figures = step_metrics(records)
    assert (figures["errors"], figures["steps"], figures["sessions"]) == (4, 6, 2)
    assert figures["exact_accuracy"] == 1


def test_unlogged_fields_are_counted_and_match_nothing():
    """Clicks without a name, one without a kind either, and typing without its text: their types alone count."""
    named, nameless = Click(name="product.buy_now"), Click(name="", click_type="purchase")
    actions = [named, nameless, Click(name=""), TypeAndSubmit(name="q", text=""), named]
    sessions = one_session(named, *actions)
    figures = step_metrics(answer(sessions, copy_the_log))
    assert (figures["steps"], figures["unscored_targets"]) == (5, 3)
    assert figures["type_accuracy"] == 1
    assert figures["exact_accuracy"] == figures["exact_accuracy_similar_text"] == figures["exact_accuracy_click"] == 1
    assert "exact_accuracy_type_and_submit" not in figures
    # Known kinds: buy_now twice, purchase and typing; a click without a name is of the kind `other`, not a purchase.
    assert figures["fine_type_accuracy"] == pytest.approx(3 / 4)
    wrong = step_metrics(answer(sessions, lambda s, i: Click(name="product.reviews")))
    assert (wrong["exact_accuracy"], wrong["type_accuracy"]) == (0, 4 / 5)


@pytest.mark.parametrize(("text", "share"), [("exact", 1 / 4), ("normalised", 2 / 4), ("similar", 3 / 4)])
def test_typed_text_counts_as_the_preset_says(text, share):
    """Logged 'red kettle'; typed the same, in other case and spacing, with one word more (F = 0.8), and another."""
    typed = ["red kettle", " RED\u00a0kettle", "red kettle steel", "toaster"]
    sessions = one_session(*[TypeAndSubmit(name="q", text="red kettle")] * 5)
    records = answer(sessions, lambda s, i: TypeAndSubmit(name="q", text=typed[i - 1]))
    figures = step_metrics(records, MetricChoices(text=text))
    assert figures["exact_accuracy"] == share
    assert figures["exact_accuracy_similar_text"] == 3 / 4


def test_similar_text_in_another_input_is_wrong():
    sessions = one_session(*[TypeAndSubmit(name="q", text="red kettle")] * 2)
    records = answer(sessions, lambda s, i: TypeAndSubmit(name="zip_code", text="red kettle"))
    assert step_metrics(records, MetricChoices(text="similar"))["exact_accuracy"] == 0


def test_the_log_s_own_click_type_wins_over_the_name():
    clicks = [Click(name="x17", click_type="purchase")] * 3
    records = answer(one_session(*clicks), lambda s, i: Click(name="x17") if i == 1 else Click(name="product.buy_now"))
    assert step_metrics(records)["fine_type_accuracy"] == 1


def test_agreement_of_the_rule_with_logged_kinds_of_click():
    """Three clicks with a kind and a name: the rule calls two as the log does. The others tell nothing."""
    kinds = {"product.buy_now": "purchase", "nav_bar.cart": "nav_bar", "search_button": "nav_bar", "x": None}
    actions: list[Action] = [Click(name=name, click_type=kind) for name, kind in kinds.items()]
    actions += [Click(name="", click_type="review"), Terminate()]
    sessions = one_session(Terminate(), *actions)
    assert step_metrics(answer(sessions, lambda s, i: "?"))["click_rule_agreement"] == pytest.approx(2 / 3)


def test_opera_counts_as_customer_r1_does():
    """Customer-R1 took OPeRA's task over; their tables differ in which figures they show, not in how one is counted."""
    assert METRIC_PRESETS["opera"] == METRIC_PRESETS["customer_r1"] == MetricChoices(f1="macro")
    reported = {"exact_accuracy", "type_f1_macro", "fine_type_accuracy", "outcome_f1_weighted"}  # Customer-R1, table 4
    reported |= {"click_type_f1_weighted"}  # OPeRA
    assert reported <= step_metrics(answer(ten_steps(), copy_the_log), "opera").keys()


def test_metrics_without_a_step_to_stand_on_are_left_out():
    figures = step_metrics(answer(one_session(*[Click(name="x")] * 2), copy_the_log))
    assert "exact_accuracy_terminate" not in figures and "outcome_f1_weighted" not in figures
    assert step_metrics([]) == {"steps": 0, "sessions": 0, "users": 0, "errors": 0, "unscored_targets": 0}


def _random_records(seed: int) -> list[StepRecord]:
    rng = random.Random(seed)
    return answer(random_sessions(60, seed), lambda s, i: rng.choice([s.steps[i].action, random_action(rng), "?"]))


def _labels(records: list[StepRecord], fine: bool = False) -> tuple[list[str], list[str]]:
    def label(action: dict[str, str] | None) -> str:
        if action is None:
            return "invalid"
        return click_type_of(action["name"]) if fine and action["type"] == "click" else action["type"]

    return [label(record.logged) for record in records], [label(record.predicted) for record in records]


@pytest.mark.parametrize("seed", range(5))
def test_figures_equal_scikit_learn_s(seed):
    records = _random_records(seed)
    logged, predicted = _labels(records)
    types = ["click", "type_and_submit", "terminate"]
    figures = step_metrics(records)
    assert figures["type_accuracy"] == pytest.approx(accuracy_score(logged, predicted))
    assert figures["type_f1_macro"] == pytest.approx(f1_score(logged, predicted, labels=types, average="macro"))
    assert figures["type_f1_weighted"] == pytest.approx(f1_score(logged, predicted, labels=types, average="weighted"))
    each = f1_score(logged, predicted, labels=types, average=None)
    assert [figures[f"type_f1_{kind}"] for kind in types] == pytest.approx(list(each))
    own_class = step_metrics(records, MetricChoices(invalid="class"))
    assert own_class["type_f1_macro"] == pytest.approx(f1_score(logged, predicted, average="macro", zero_division=0))
    logged, predicted = _labels(records, fine=True)
    assert figures["fine_type_accuracy"] == pytest.approx(accuracy_score(logged, predicted))
    clicks = [place for place, record in enumerate(records) if record.logged["type"] == "click"]
    logged, predicted = [logged[i] for i in clicks], [predicted[i] for i in clicks]
    expected = f1_score(logged, predicted, average="weighted", zero_division=0)
    assert figures["click_type_f1_weighted"] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_outcome_f1_equals_scikit_learn(seed):
    outcomes = {"purchase": "purchase", "terminate": "terminate"}
    last = [record for record in _random_records(seed) if record.step_index == record.step_count - 1]
    logged, predicted = _labels(last, fine=True)
    pairs = [(a, outcomes.get(b, "other")) for a, b in zip(logged, predicted, strict=True) if a in outcomes]
    expected = f1_score([a for a, _ in pairs], [b for _, b in pairs], average="weighted", zero_division=0)
    assert step_metrics(_random_records(seed))["outcome_f1_weighted"] == pytest.approx(expected)
    assert step_metrics(_random_records(seed), MetricChoices(mean="sessions"))["outcome_f1_weighted"] == pytest.approx(
        expected
    )


def test_table_7_of_customer_r1_gives_its_macro_f1():
    """786 clicks (739 right of 831 predicted), 76 inputs (1 of 4), 40 terminations (0 of 0): reported 31.17 percent."""
    click, typed = Click(name="x"), TypeAndSubmit(name="q", text="t")
    rows = [(click, click, 739), (click, typed, 3), (click, "?", 44), (typed, typed, 1), (typed, click, 62)]
    rows += [(typed, "?", 13), (Terminate(), click, 30), (Terminate(), "?", 10)]
    records = []
    for place, (logged, reply, count) in enumerate(rows):
        steps = (Step(page="p", action=logged),) * (count + 1)
        session = Session(session_id=f"s{place}", user_id="u", source="test", steps=steps)
        records += answer([session], lambda s, i, reply=reply: reply)
    figures = step_metrics(records, "customer_r1")
    assert figures["steps"] == 902
    assert figures["type_f1"] == pytest.approx(0.3132, abs=5e-4)


def test_unknown_names_get_a_hint():
    with pytest.raises(BadConfig, match=r"Unknown metrics preset 'shop-r1'\. Did you mean 'shop_r1'\?"):
        step_metrics([], "shop-r1")
    with pytest.raises(BadConfig, match=r"metrics\.f1 is 'micro'; it must be one of macro, weighted"):
        MetricChoices(f1="micro")


def test_figures_are_plain_numbers():
    assert all(type(value) is float and np.isfinite(value) for value in step_metrics(_random_records(9)).values())


def test_a_mix_given_as_weights_is_that_of_its_metrics():
    records = answer(ten_steps(), lambda session, index: Click(name="product.reviews"))
    figures, in_mix = step_metrics(records), step_metrics(records, "shop_r1,mix=690:677:512")
    for name in ("exact_accuracy", "type_accuracy", "type_f1_weighted"):
        assert in_mix[name] == pytest.approx(figures[f"{name}_shop_r1_mix"])
    assert in_mix["exact_accuracy_click"] == 5 / 6
    leaving = step_metrics(answer(ten_steps(), lambda session, index: Terminate()))
    assert leaving["exact_accuracy_shop_r1_mix"] == pytest.approx(0.2725, abs=5e-5)  # as the paper's table 4 says
    assert leaving["type_f1_weighted_shop_r1_mix"] == pytest.approx(0.1167, abs=5e-5)


def test_the_logs_own_mix_changes_nothing():
    records = answer(random_sessions(20, 3), lambda s, i: random_action(random.Random(i)))
    own = [sum(record.logged["type"] == kind for record in records) for kind in MIX_TYPES]
    plain, in_mix = (
        step_metrics(records),
        step_metrics(records, MetricChoices(f1="weighted", mix=":".join(map(str, own)))),
    )
    assert in_mix == pytest.approx(plain)


@pytest.mark.parametrize("mix", ["690:677", "1:2:3:4", "0:1:1", "a:b:c", "1:1:-1", "1.5:1:1"])
def test_a_mix_that_is_none_is_refused(mix):
    with pytest.raises(BadConfig):
        MetricChoices(mix=mix)


def test_a_mix_with_a_type_that_is_not_logged_is_refused_and_its_metric_left_out():
    records = answer(one_session(*[Click(name="x")] * 3), copy_the_log)
    assert not any(name.endswith("_mix") for name in step_metrics(records))
    with pytest.raises(BadConfig):
        step_metrics(records, "shop_r1,mix=1:1:1")
    unanswered = answer(ten_steps(), lambda s, i: None if isinstance(s.steps[i].action, Terminate) else Terminate())
    assert "exact_accuracy" not in step_metrics(unanswered, "shop_r1,mix=1:1:1")  # other agents have their rows


def test_single_choices_go_over_a_preset_and_unknown_ones_are_refused():
    changed = metric_preset("customer_r1,text=similar,invalid=class,mean=sessions,mix=1:2:3")
    assert changed == MetricChoices(text="similar", invalid="class", mean="sessions", mix="1:2:3")
    for wrong in ("opera,txt=similar", "opera,text=same", "opera,mix=1:2"):
        with pytest.raises(BadConfig):
            metric_preset(wrong)
