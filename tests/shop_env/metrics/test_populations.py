"""Populations: divergences by hand."""

import numpy as np
import pytest

from replay_sessions.schema import Terminate
from shop_env.metrics import population_fidelity, trace_of
from shop_env.metrics.people import session_traces
from shop_env.metrics.populations import js_divergence
from tests.shop_env.planted import answer, copy_the_log, ten_steps


def test_a_copy_of_the_log_does_not_diverge() -> None:
    logged, simulated = session_traces(answer(ten_steps(), copy_the_log))
    everyone = population_fidelity(logged, simulated)
    assert everyone is not None
    assert everyone.visits == 3
    assert everyone.action_mix_divergence == everyone.transition_divergence == everyone.length_distance == 0
    assert everyone.purchase_rate == everyone.logged_purchase_rate == pytest.approx(1 / 3)


def test_always_leaving_gives_the_hand_count() -> None:
    """Logged lengths 4, 3, 3; the agent leaves at once: mean distance (3 + 2 + 2) / 3."""
    logged, simulated = session_traces(answer(ten_steps(), lambda s, i: Terminate()))
    everyone = population_fidelity(logged, simulated)
    assert everyone is not None
    assert everyone.length_distance == pytest.approx(7 / 3)
    assert everyone.purchase_rate_difference == pytest.approx(-1 / 3)
    # logged shares: review .5, purchase .1, typed .2, leaving .2; simulated: leaving 1; middle: .25 .05 .1 .6
    expected = 0.5 * (0.5 + 0.1 + 0.2 + 0.2 * np.log2(0.2 / 0.6)) + 0.5 * np.log2(1 / 0.6)
    assert everyone.action_mix_divergence == pytest.approx(expected)


def test_no_transition_spans_what_is_missing() -> None:
    """One action is missing before the third: review and purchase did not follow one another."""
    kinds = ["search", "review", "purchase", "terminate"]
    whole, broken = trace_of(kinds), trace_of(kinds, breaks=[2])
    assert set(whole.pairs) - set(broken.pairs) == {("review", "purchase")}
    assert (broken.kinds, broken.length, broken.bought) == (whole.kinds, whole.length, whole.bought)


def test_a_trace_ends_where_it_first_leaves() -> None:
    trace = trace_of(["review", "terminate", "purchase"])
    assert (trace.length, trace.bought) == (2, False)
    assert trace_of(["review", "purchase"]).bought and not trace_of([]).bought


def test_unreadable_replies_are_a_kind_of_their_own() -> None:
    logged, simulated = session_traces(answer(ten_steps(), lambda s, i: "?"))
    assert {kind for visit in simulated for kind in visit.kinds} == {"invalid"}
    assert population_fidelity(logged, simulated).action_mix_divergence == pytest.approx(1)


def test_nothing_differs_from_something_as_much_as_can_be() -> None:
    logged = [trace_of(["click", "purchase"]), trace_of(["search", "click", "terminate"])]
    at_once, copied = [trace_of(["terminate"])] * 2, [trace_of(["click", "terminate"])] * 2
    assert js_divergence({"a": 3}, {}) == js_divergence({}, {"a": 3}) == 1.0
    assert js_divergence({}, {}) == 0.0
    leaves, copies = (population_fidelity(logged, side).transition_divergence for side in (at_once, copied))
    assert leaves == 1.0 > copies
