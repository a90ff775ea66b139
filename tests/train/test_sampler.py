"""The order of batches: whole sessions or single steps, uniform or balanced, alike for every process and resume."""

from collections import Counter
from random import Random

import pytest

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit, reply_action
from train.config import OptimizerConfig
from train.grpo.config import GrpoConfig
from train.sampler import SessionPlan, StepPlan, own_share
from train.tokens import ReplySpan, SessionTokens

CLICK, TYPE = Click(name="a"), TypeAndSubmit(name="a", text="b")


def session(name: str, tokens: int = 1, actions: tuple[Action, ...] = (CLICK,)) -> SessionTokens:
    return SessionTokens(name, [0] * tokens, [ReplySpan(i, 1, 2, action) for i, action in enumerate(actions)])


SHOPPERS = [session(str(number), actions=(CLICK, TYPE, CLICK, CLICK, Terminate())) for number in range(20)]


def names(plan: SessionPlan, steps: range) -> list[str]:
    return [trunk.session_id for step in steps for trunk, _ in plan.batch(step)]


def test_each_epoch_shows_every_session_once_in_an_order_of_its_own():
    sessions = [session(str(number)) for number in range(10)]
    plan = SessionPlan(sessions, size=2, max_tokens=100, key="key")
    first, second = names(plan, range(5)), names(plan, range(5, 10))
    assert sorted(first) == sorted(second) == sorted(trunk.session_id for trunk in sessions)
    assert first != second
    assert names(SessionPlan(sessions, size=2, max_tokens=100, key="key"), range(8, 9)) == second[6:8]


def test_a_batch_holds_no_more_tokens_than_allowed_but_at_least_one_session():
    lengths = [10, 50, 30, 20, 90, 120]
    plan = SessionPlan([session(str(n), tokens=n) for n in lengths], size=3, max_tokens=100, key="key")
    batches = [[len(trunk.tokens) for trunk, _ in plan.batch(step)] for step in range(8)]
    assert all(len(batch) == 1 or sum(batch) <= 100 for batch in batches)
    assert [120] in batches


def test_sessions_in_several_trunks_make_the_batches_of_sessions_in_one():
    trunks = [SessionTokens(one.session_id, [0], [reply]) for one in SHOPPERS for reply in one.replies]
    several, one = (SessionPlan(each, 5, 5, "key").batch(1, first_replies=2) for each in (trunks, SHOPPERS))
    replies_of_several = [(trunk.session_id, reply) for trunk, (reply,) in several]
    assert replies_of_several == [(trunk.session_id, reply) for trunk, replies in one for reply in replies]


def test_a_uniform_epoch_of_single_steps_shows_every_step_once():
    plan = StepPlan(SHOPPERS, size=10, balance="uniform", key="key")
    seen = Counter(
        (trunk.session_id, reply.step_index)
        for step in range(10)
        for trunk, replies in plan.batch(step)
        for reply in replies
    )
    assert len(seen) == 100
    assert set(seen.values()) == {1}


def test_sessions_cannot_be_balanced():
    with pytest.raises(BadConfig):
        GrpoConfig(optimizer=OptimizerConfig(lr=1), steps=1, balance="balanced")


def test_balanced_batches_hold_clicks_and_texts_a_tenth_more_often_than_terminations():
    plan = StepPlan(SHOPPERS, size=8, balance="balanced", key="key")
    types = Counter(
        reply_action(reply.action)["type"]
        for step in range(2500)
        for _, replies in plan.batch(step)
        for reply in replies
    )
    assert types["click"] / types["terminate"] == pytest.approx(1.1, rel=0.06)
    assert types["type_and_submit"] / types["terminate"] == pytest.approx(1.1, rel=0.06)


def test_balance_without_a_type_is_refused():
    with pytest.raises(BadConfig, match="no training step is a terminate"):
        StepPlan([session("a", actions=(CLICK, TYPE))], size=8, balance="balanced", key="key")


@pytest.mark.parametrize("kind", ["sessions", "steps"])
def test_processes_share_a_batch_without_a_gap_or_an_overlap(kind):
    def plan(rank: int = 0, ranks: int = 1) -> SessionPlan | StepPlan:
        if kind == "sessions":
            return SessionPlan(SHOPPERS, size=6, max_tokens=100, key="key", share=(rank, ranks))
        return StepPlan(SHOPPERS, size=6, balance="balanced", key="key", share=(rank, ranks))

    def pairs(plan: SessionPlan | StepPlan) -> list[tuple[str, int]]:
        return [(trunk.session_id, reply.step_index) for trunk, replies in plan.batch(3) for reply in replies]

    shares = [pairs(plan(rank, 3)) for rank in range(3)]
    assert sorted(pair for share in shares for pair in share) == sorted(pairs(plan()))


def test_the_process_with_the_most_tokens_has_few_more_than_the_mean():
    """64 pairs whose lengths spread as those of sessions do; dealt in turn, the most is further above the mean."""
    random = Random(0)
    lengths = [min(32_768, round(random.lognormvariate(9.5, 0.6))) for _ in range(64)]
    batch = [(trunk := SessionTokens(str(n), [0], [ReplySpan(1, n - 1, n, CLICK)]), trunk.replies) for n in lengths]
    loads = [sum(replies[-1].end for _, replies in own_share(batch, (rank, 8))) for rank in range(8)]
    in_turn = [sum(lengths[rank::8]) for rank in range(8)]
    mean = sum(lengths) / 8
    assert sum(loads) == sum(lengths)
    assert max(loads) <= 1.05 * mean < max(in_turn)
