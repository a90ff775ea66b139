"""Every metric on agents whose behaviour is known, against values counted by hand; none is without such a value.

The log (tests.shop_env.planted.ten_steps), R a click on the reviews, P on buying, T typing, L leaving:

    session a: T R R P    session b: T R L    session c: R R L

Typing is logged with the reason "I need a kettle.", other steps with none.
"""

from collections.abc import Callable
from math import log, log2
from typing import Any

import msgspec
import pytest

from replay_sessions.schema import Action, Click, Scroll, Session, Step, Terminate, TypeAndSubmit
from shop_env.metrics import (
    MetricChoices,
    StepRecord,
    likelihood_of,
    paired_test,
    record_step,
    step_metrics,
)
from shop_env.metrics.all_metrics import all_metrics
from shop_env.metrics.people import people_figures
from shop_env.metrics.step_record import TOO_LONG
from shop_env.replies import format_reply
from shop_env.reward import reward_preset
from tests.shop_env.planted import ten_steps

REWARD = reward_preset("shop_r1")
REASON = "I need a kettle."
REVIEWS, BUY = Click(name="product.reviews"), Click(name="product.buy_now")
CANDIDATES = [REVIEWS, TypeAndSubmit(name="q", text="red kettle"), BUY, Terminate()]


def records(reply: Callable[[Session, int, int], str], probabilities: list[float] | None = None) -> list[StepRecord]:
    """What an agent answered; it is given the session, the step and how many steps came before."""
    found: list[StepRecord] = []
    for session in ten_steps():
        steps = tuple(
            msgspec.structs.replace(step, rationale=REASON if isinstance(step.action, TypeAndSubmit) else None)
            for step in session.steps
        )
        session = msgspec.structs.replace(session, steps=steps)
        for index in range(1, len(steps)):
            likelihood: dict[str, Any] = {}
            if probabilities is not None:
                held = dict(zip(CANDIDATES, probabilities, strict=True))
                likelihood = likelihood_of(steps[index].action, held, CANDIDATES)._asdict()
            record = record_step(session, index, reply(session, index, len(found)), REWARD)
            found.append(msgspec.structs.replace(record, **likelihood))
    return found


def likeliest(rationale: str) -> Callable[[Session, int, int], str]:
    return lambda session, index, before: format_reply(rationale, REVIEWS)


def copied(session: Session, index: int, before: int) -> str:
    return format_reply(session.steps[index].rationale or "", session.steps[index].action)


def every_second_copied(session: Session, index: int, before: int) -> str:
    return copied(session, index, before) if before % 2 == 0 else "I would rather not say."


CLICKED, TYPED, LEFT = 690 / 1879, 677 / 1879, 512 / 1879  # Shop-R1's mix
# It answers R; its words "i need it" share 2 of 3 with 2 of the 4 logged ones.
CLICKS = {
    "exact_accuracy": 5 / 10,
    "exact_accuracy_similar_text": 5 / 10,
    "exact_accuracy_click": 5 / 6,
    "exact_accuracy_type_and_submit": 0,
    "exact_accuracy_terminate": 0,
    "exact_accuracy_shop_r1_mix": CLICKED * 5 / 6,
    "type_accuracy_shop_r1_mix": CLICKED,
    "type_f1_weighted_shop_r1_mix": CLICKED * 2 * CLICKED / (2 * CLICKED + TYPED + LEFT),
    "type_accuracy": 6 / 10,
    "type_accuracy_click": 1,
    "type_accuracy_type_and_submit": 0,
    "type_accuracy_terminate": 0,
    "type_f1_click": 2 * 6 / (2 * 6 + 4),
    "type_f1_type_and_submit": 0,
    "type_f1_terminate": 0,
    "type_f1_macro": (12 / 16 + 0 + 0) / 3,
    "type_f1_weighted": 0.6 * 12 / 16,
    "type_f1": 0.6 * 12 / 16,
    "fine_type_accuracy": 5 / 10,
    "click_rule_agreement": 1,
    "click_type_f1_weighted": 5 / 6 * (2 * 5 / (2 * 5 + 1)) + 1 / 6 * 0,
    "invalid_rate": 0,
    # right clicks 1001; P: format, type, name at all (1 of 2 and 3 words is under tau); other types: format
    "mean_reward": (5 * 1001 + (0.5 + 0.3 + 0.2) + 4 * 0.5) / 10,
    "outcome_f1_purchase": 0,
    "outcome_f1_weighted": 0,
    "stop_too_early": 0 / 8,
    "stop_too_late": 2 / 2,
    "rationale_similarity": 2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4),
    "empty_rationale_rate": 0,
}
# Certain of R: all else has probability 0 and, four being as likely, the worst rank.
SURE = CLICKS | {
    "nll": 5 * log(1e6) / 10,
    "top1_accuracy": 5 / 10,
    "top3_accuracy": 5 / 10,
    "top5_accuracy": 1,
    "stop_brier": 2 * 1 / 10,
}
# Knows that shoppers do R, T, P, L with these probabilities, and does the likeliest.
SHARES = [0.5, 0.25, 0.15, 0.1]
ORACLE = CLICKS | {
    "nll": (5 * log(2) + 2 * log(4) - log(0.15) + 2 * log(10)) / 10,
    "top1_accuracy": 5 / 10,
    "top3_accuracy": 8 / 10,
    "top5_accuracy": 1,
    "stop_brier": (8 * 0.1**2 + 2 * 0.9**2) / 10,
    "rationale_similarity": 1,
}
COPY = dict.fromkeys(CLICKS, 1.0) | {
    "invalid_rate": 0,
    "empty_rationale_rate": 8 / 10,
    "mean_reward": (6 * 1001 + 2 * 1001.1 + 2 * 0.8) / 10,
    "stop_brier": 0,
    "stop_too_early": 0,
    "stop_too_late": 0,
}
# + right, - unreadable: a T+ R- R+ P-, b T+ R- L+, c R- R+ L-
HALF = {
    "exact_accuracy": 5 / 10,
    "exact_accuracy_similar_text": 5 / 10,
    "exact_accuracy_click": 2 / 6,
    "exact_accuracy_type_and_submit": 2 / 2,
    "exact_accuracy_terminate": 1 / 2,
    "exact_accuracy_shop_r1_mix": CLICKED * 2 / 6 + TYPED + LEFT / 2,
    "type_accuracy_shop_r1_mix": CLICKED * 2 / 6 + TYPED + LEFT / 2,
    "type_f1_weighted_shop_r1_mix": CLICKED / 2 + TYPED + LEFT * 2 / 3,
    "type_accuracy": 5 / 10,
    "type_accuracy_click": 2 / 6,
    "type_accuracy_type_and_submit": 2 / 2,
    "type_accuracy_terminate": 1 / 2,
    "type_f1_click": 2 * 2 / (2 * 2 + 4),
    "type_f1_type_and_submit": 1,
    "type_f1_terminate": 2 * 1 / (2 * 1 + 1),
    "type_f1_macro": (1 / 2 + 1 + 2 / 3) / 3,
    "type_f1_weighted": 0.6 / 2 + 0.2 + 0.2 * 2 / 3,
    "type_f1": 0.6 / 2 + 0.2 + 0.2 * 2 / 3,
    "fine_type_accuracy": 5 / 10,
    "click_rule_agreement": 1,
    "click_type_f1_weighted": 5 / 6 * (2 * 2 / (2 * 2 + 3)) + 1 / 6 * 0,
    "invalid_rate": 5 / 10,
    "mean_reward": (2 * 1001.1 + 2 * 1001 + 0.8) / 10,
    "outcome_f1_purchase": 0,
    "outcome_f1_weighted": 1 / 3 * 0 + 2 / 3 * (2 * 1 / (2 * 1 + 1)),
    "stop_brier": 1 / 10,
    "stop_too_early": 0 / 8,
    "stop_too_late": 1 / 2,
    "rationale_similarity": 1,
    "empty_rationale_rate": 3 / 5,
}
AGENTS = {
    "always click": (records(likeliest("I need it."), [1.0, 0.0, 0.0, 0.0]), SURE),
    "the oracle": (records(likeliest(REASON), SHARES), ORACLE),
    "a copy of the log": (records(copied), COPY),
    "half the time wrong": (records(every_second_copied), HALF),
}
COUNTS = {"steps": 10, "sessions": 3, "users": 2, "errors": 0, "unscored_targets": 0}


@pytest.mark.parametrize("agent", AGENTS)
def test_every_metric_of_a_planted_agent_has_its_value_counted_by_hand(agent):
    given, expected = AGENTS[agent]
    assert step_metrics(given) == pytest.approx(COUNTS | expected, rel=1e-12, abs=1e-12)


LONG_PAGES = {"page_cut_rate": 3 / 10, "target_shown": 3 / 4, "pages_lost_rate": 4 / 10, "too_long_rate": 2 / 10}


SCROLLS = {"exact_accuracy_scroll": 1 / 2, "type_accuracy_scroll": 1 / 2, "type_f1_scroll": 2 * 1 / (2 * 1 + 2 + 1)}


def test_scrolls_are_a_type_where_they_are_logged():
    logged: list[Action] = [Scroll(), Scroll(), REVIEWS, Terminate()]
    predicted: list[Action] = [Scroll(), REVIEWS, Scroll(), Scroll()]
    steps = tuple(Step(page="", action=action) for action in logged)
    session = Session(session_id="s", user_id="u", source="test", steps=steps)
    given = [
        record_step(session, index, format_reply("", action), REWARD, extraction="strict_scroll")
        for index, action in enumerate(predicted)
    ]
    metrics = step_metrics(given)
    assert {name: metrics[name] for name in SCROLLS} == pytest.approx(SCROLLS)
    assert metrics["mean_reward"] == pytest.approx((0.8 + 3 * 0.5) / 4)
    assert record_step(session, 0, given[0].reply, REWARD).problem == "unknown_type"


def test_no_metric_is_without_such_a_value():
    assert set(SURE | LONG_PAGES | SCROLLS) == set(all_metrics(MetricChoices()))


def test_shares_of_long_pages_are_counted_by_hand():
    given = records(copied)
    changed = [
        msgspec.structs.replace(
            record,
            page_cut=number < 3,
            target_shown=number != 3 if number < 4 else None,
            pages_left_out=max(0, number - 5),
            problem=TOO_LONG if number % 5 == 0 else None,
        )
        for number, record in enumerate(given)
    ]
    metrics = step_metrics(changed)
    assert {name: metrics[name] for name in LONG_PAGES} == pytest.approx(LONG_PAGES)
    assert not LONG_PAGES.keys() & step_metrics(given).keys()


@pytest.mark.parametrize("metric", sorted(COPY))
def test_differences_of_two_planted_agents_are_those_of_their_values(metric):
    difference = paired_test(AGENTS["a copy of the log"][0], AGENTS["half the time wrong"][0], metric).estimate
    assert difference.value == pytest.approx(COPY[metric] - HALF[metric])
    assert difference.low is None  # of two users


def entropy(*shares: float) -> float:
    return -sum(share * log2(share) for share in shares)


# Jensen-Shannon divergence = entropy of the mean - mean of the entropies. Logged kinds R .5 T .2 L .2 P .1; pairs
# TR, RR, RL 2/7 each, RP 1/7. I is an unreadable reply.
MIX, PAIRS = entropy(0.5, 0.2, 0.2, 0.1), entropy(2 / 7, 2 / 7, 2 / 7, 1 / 7)
POPULATIONS = {
    # R and RR only
    "always click": (
        entropy(0.75, 0.1, 0.1, 0.05) - (MIX + 0) / 2,
        entropy(1 / 7, 4.5 / 7, 1 / 7, 0.5 / 7) - (PAIRS + 0) / 2,
    ),
    "a copy of the log": (0, 0),
    # T .2 R .2 L .1 I .5; a TIRI, b TIL, c IRI: no pair is one of the log's
    "half the time wrong": (
        entropy(0.35, 0.2, 0.15, 0.05, 0.25) - (MIX + entropy(0.2, 0.2, 0.1, 0.5)) / 2,
        1,
    ),
}


@pytest.mark.parametrize("agent", POPULATIONS)
def test_the_population_of_a_planted_agent_has_the_figures_counted_by_hand(agent):
    mix, pairs = POPULATIONS[agent]
    found = people_figures(AGENTS[agent][0])
    assert found.action_mix_divergence == pytest.approx(mix, abs=1e-12)
    assert found.transition_divergence == pytest.approx(pairs, abs=1e-12)
