"""Planted coefficients lie in the intervals of those that are estimated."""

import msgspec
import pytest

from agents.baselines.coefficients import coefficient_table
from replay_sessions.foundation.table import Estimate
from replay_sessions.store.splits import SplitPlan
from tests.agents.baselines.test_choice_model import GOAL, PRICE, RATING, planted_sessions
from tests.stores import store_at


@pytest.mark.long
@pytest.mark.parametrize(
    ("goal", "budget", "amount"),
    [(GOAL, "the goal's budget", 100), ("a kettle", "the store's median price", 54.5)],
)
def test_planted_effects_lie_in_their_intervals(goal, budget, amount, tmp_path):
    sessions = (msgspec.structs.replace(session, goal=goal) for session in planted_sessions(1500))
    store_at(tmp_path / "store", sessions, splits=SplitPlan(by="official"))
    table = coefficient_table(str(tmp_path / "store"))
    estimates = {change: estimate for _, change, estimate in table.rows}
    for change, planted in ((f"price up by 10% of {budget}", PRICE * amount / 1000), ("one star more", RATING)):
        estimate = estimates[change]
        assert isinstance(estimate, Estimate)
        assert abs(estimate.value - planted) < 1.3 * (estimate.value - estimate.low) < 0.5
