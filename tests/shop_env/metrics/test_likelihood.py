"""Likelihood, stopping and rationales by hand."""

import math

import msgspec
import pytest

from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.foundation.table import Estimate
from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from shop_env.metrics import estimate_metric, likelihood_of, record_step, step_metrics
from shop_env.replies import format_reply
from shop_env.reward import reward_preset
from tests.shop_env.planted import answer, ten_steps

REWARD = reward_preset("shop_r1")


LEAVE = Terminate()
CLICKS: list[Action] = [Click(name=name) for name in ("cart", "home", "reviews")]
PAGE = [LEAVE, *CLICKS]


@pytest.mark.parametrize(
    ("shares", "logged", "expected"),
    [
        ([0.1, 0.5, 0.3, 0.1], CLICKS[0], (0.5, 1, 0.1)),
        ([0.4, 0.2, 0.4, 0.0], CLICKS[1], (0.4, 2, 0.4)),  # of equals the worst rank
        ([0.25] * 4, LEAVE, (0.25, 4, 0.25)),
        ([0.7, 0.3, 0.0, 0.0], CLICKS[2], (0.0, 4, 0.7)),
    ],
)
def test_likelihood_of_a_candidate(shares, logged, expected):
    assert likelihood_of(logged, dict(zip(PAGE, shares, strict=True)), PAGE) == expected


def test_an_action_without_a_probability_ranks_behind_all_that_the_page_offers():
    assert likelihood_of(CLICKS[1], {LEAVE: 1.0}, PAGE) == (0.0, 4, 1.0)
    typed = TypeAndSubmit(name="q", text="what nobody foresaw")
    assert likelihood_of(typed, {LEAVE: 1.0}, PAGE) == (0.0, 5, 1.0)
    assert likelihood_of(typed, {typed: 0.75, LEAVE: 0.25}, PAGE) == (0.75, 1, 0.25)


def test_an_action_that_was_not_wholly_logged_has_no_likelihood():
    assert likelihood_of(Click(name=""), {LEAVE: 1.0}, PAGE) == (None, None, 1.0)


def test_kinds_of_one_click_are_one_action():
    given = {Click(name="cart", click_type="nav_bar"): 0.5, Click(name="cart"): 0.25, LEAVE: 0.25}
    assert likelihood_of(Click(name="cart", click_type="search"), given, PAGE) == (0.75, 1, 0.25)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ([1.0] * 4, "the probabilities of 4 actions sum to 4; a distribution"),
        ([0.2] * 4, "sum to 0.8"),
        ([0.5, 0.5, 0.002, 0.0], "sum to 1.002"),
        ([1.5, -0.5, 0.0, 0.0], "is 1.5|is -0.5"),
        ([math.nan, 1.0, 0.0, 0.0], "is nan; it must lie in 0 to 1"),
        ([math.inf, 1.0, 0.0, 0.0], "is inf"),
    ],
)
def test_probabilities_that_are_no_distribution_are_a_failure_of_the_agent(shares, message):
    with pytest.raises(AgentFailed, match=message):
        likelihood_of(LEAVE, dict(zip(PAGE, shares, strict=True)), PAGE)


def test_no_probabilities_at_all_are_no_distribution():
    with pytest.raises(AgentFailed, match="the probabilities of 0 actions sum to 0"):
        likelihood_of(LEAVE, {}, PAGE)


def test_sums_may_be_off_by_rounding():
    assert likelihood_of(LEAVE, dict(zip(PAGE, [0.2501, 0.25, 0.25, 0.2503], strict=True)), PAGE)[0] == 0.2501


def test_nll_and_top_k_by_hand():
    """Four steps: likeliest (p 1/2), third (p 1/4), not a candidate, and an agent that gave no probabilities."""
    session = Session(session_id="s", user_id="u", source="t", steps=(Step(page="p", action=Click(name="x")),) * 4)
    given = [(0.5, 1), (0.25, 3), (0.0, 9), (None, None)]
    records = [
        msgspec.structs.replace(
            record_step(session, i, format_reply("", Click(name="x")), REWARD), logged_probability=p, logged_rank=rank
        )
        for i, (p, rank) in enumerate(given)
    ]
    figures = step_metrics(records)
    assert figures["nll"] == pytest.approx((math.log(2) + math.log(4) + math.log(1e6)) / 3)
    assert figures["top1_accuracy"] == pytest.approx(1 / 3)
    assert figures["top3_accuracy"] == figures["top5_accuracy"] == pytest.approx(2 / 3)
    assert "nll" not in step_metrics(records[3:])
    assert (
        step_metrics([msgspec.structs.replace(records[0], logged_probability=1.0005)])["nll"] == 0
    )  # a sum's rounding
    assert estimate_metric(records, "nll") == Estimate(figures["nll"])  # one user: no interval


def test_stopping_by_hand():
    """Ten steps, the shopper leaves at two of them. The agent leaves at every step of session c (3 steps, 1 right)."""
    figures = step_metrics(answer(ten_steps(), lambda s, i: Terminate() if s.session_id == "c" else Click(name="x")))
    assert figures["stop_too_early"] == pytest.approx(2 / 8)
    assert figures["stop_too_late"] == pytest.approx(1 / 2)
    assert figures["stop_brier"] == pytest.approx(3 / 10)


def test_rationales_are_compared_where_there_is_a_human_one():
    """Logged 'too dear for me' twice, none once: one equal, one unreadable (0), one not counted."""
    step = Step(page="p", action=Terminate(), rationale="Too dear for me.")
    session = Session(session_id="s", user_id="u", source="t", steps=(step, step, Step(page="p", action=Terminate())))
    replies = [format_reply("too dear for me", Terminate()), "?", format_reply("x", Terminate())]
    figures = step_metrics([record_step(session, i, reply, REWARD) for i, reply in enumerate(replies)])
    assert figures["rationale_similarity"] == pytest.approx(1 / 2)
