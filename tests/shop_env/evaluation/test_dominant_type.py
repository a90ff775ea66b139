"""Agents that give one type of action far more often than people do are remarked, and no others."""

import pytest

from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.schema import Click, Terminate
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.results import dominant_type
from shop_env.replies import format_reply
from tests.shop_env.evaluation.test_evaluate import Scripted

CLICK, LEAVE = format_reply("red", Click(name="results.red")), format_reply("done", Terminate())


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        ([LEAVE] * 5, "terminate in 100% of its replies, 20% of people's actions"),
        ([LEAVE] * 4 + [CLICK], "terminate in 80% of its replies, 20% of people's actions"),
        ([CLICK] * 5, "click in 100% of its replies, 60% of people's actions"),
        ([CLICK] * 4 + [LEAVE], None),  # 80%, where people click at 60%
        ([LEAVE] * 3 + ["no json"] * 2, None),  # what cannot be read is a reply
        ([LEAVE] * 3 + [CLICK] + [AgentFailed("down")], "terminate in 75% of its replies, 25% of people's actions"),
        ([AgentFailed("down")] * 5, None),
        (["no json"] * 5, None),
    ],
)
def test_mostly_one_answer(planted_store, replies, said):
    # Logged: click, typing, terminate | click, click.
    found = dominant_type(evaluate(Scripted(*replies), planted_store, "test"))
    assert (found and found.sentence) == (said and f"mostly one answer: {said}; read macro-F1 beside its exact match")
