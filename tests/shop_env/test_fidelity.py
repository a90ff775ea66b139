"""Populations: divergences against SciPy and by hand, per group."""

import random

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from replay_sessions.schema import Click, Terminate
from shop_env.metrics import population_fidelity, teacher_forced_visits, visit_of
from shop_env.metrics.fidelity import js_divergence, wasserstein
from tests.shop_env.planted import answer, random_action, random_sessions, ten_steps


@pytest.mark.parametrize("seed", range(5))
def test_divergences_equal_scipy_s(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.integers(0, 9, size=(2, 12)).astype(float)
    expected = jensenshannon(p, q, base=2) ** 2
    assert js_divergence(dict(enumerate(p)), dict(enumerate(q))) == pytest.approx(expected)
    a, b = rng.integers(1, 20, size=31).tolist(), rng.integers(1, 20, size=17).tolist()
    assert wasserstein(a, b) == pytest.approx(wasserstein_distance(a, b))


def test_a_copy_of_the_log_does_not_diverge() -> None:
    logged, simulated = teacher_forced_visits(answer(ten_steps(), lambda s, i: s.steps[i].action))
    (everyone,) = population_fidelity(logged, simulated, "teacher_forced")
    assert (everyone.group, everyone.visits, everyone.mode) == ("all", 3, "teacher_forced")
    assert everyone.action_mix_divergence == everyone.transition_divergence == everyone.length_distance == 0
    assert everyone.purchase_rate == everyone.logged_purchase_rate == pytest.approx(1 / 3)


def test_always_leaving_gives_the_hand_count() -> None:
    """Logged lengths 4, 3, 3; the agent leaves at once: mean distance (3 + 2 + 2) / 3."""
    logged, simulated = teacher_forced_visits(answer(ten_steps(), lambda s, i: Terminate()))
    (everyone,) = population_fidelity(logged, simulated, "teacher_forced")
    assert everyone.length_distance == pytest.approx(7 / 3)
    assert everyone.purchase_rate_difference == pytest.approx(-1 / 3)
    # logged shares: review .5, purchase .1, typed .2, leaving .2; simulated: leaving 1; middle: .25 .05 .1 .6
    expected = 0.5 * (0.5 + 0.1 + 0.2 + 0.2 * np.log2(0.2 / 0.6)) + 0.5 * np.log2(1 / 0.6)
    assert everyone.action_mix_divergence == pytest.approx(expected)


def test_figures_per_group_are_those_of_the_group_alone() -> None:
    rng = random.Random(1)
    sessions = random_sessions(80, 1)
    records = answer(sessions, lambda s, i: rng.choice([s.steps[i].action, random_action(rng)]))
    groups = {session.session_id: "even" if int(session.session_id[1:]) % 2 == 0 else "odd" for session in sessions}
    everyone, even, odd = population_fidelity(*teacher_forced_visits(records, groups), "teacher_forced")
    assert (everyone.group, even.group, odd.group) == ("all", "even", "odd")
    assert everyone.visits == even.visits + odd.visits == 80
    alone = [record for record in records if groups[record.session_id] == "even"]
    (again,) = population_fidelity(*teacher_forced_visits(alone), "teacher_forced")
    assert again.action_mix_divergence == even.action_mix_divergence
    assert again.transition_divergence == even.transition_divergence


def test_transitions_of_a_teacher_forced_agent_begin_with_the_logged_kind() -> None:
    logged, simulated = teacher_forced_visits(answer(ten_steps()[2:], lambda s, i: Click(name="product.buy_now")))
    assert logged[0].pairs == (("review", "review"), ("review", "terminate"))
    assert simulated[0].pairs == (("review", "purchase"), ("review", "purchase"))
    assert (simulated[0].length, simulated[0].bought) == (3, True)


def test_a_visit_ends_where_it_first_leaves() -> None:
    visit = visit_of(["review", "terminate", "purchase"])
    assert (visit.length, visit.bought) == (2, False)
    assert visit_of(["review", "purchase"]).bought


def test_unreadable_replies_are_a_kind_of_their_own() -> None:
    logged, simulated = teacher_forced_visits(answer(ten_steps(), lambda s, i: "?"))
    assert {kind for visit in simulated for kind in visit.kinds} == {"invalid"}
    assert population_fidelity(logged, simulated, "teacher_forced")[0].action_mix_divergence == pytest.approx(1)


def test_no_visits_no_figures() -> None:
    assert population_fidelity([], [], "free_running") == []
