from collections import Counter

import msgspec
import pytest

from replay_sessions.foundation.errors import BadConfig, BadSession
from replay_sessions.store.manifest import SplitPlan, assign_split
from tests.replay_sessions.conftest import make_session


def test_a_users_sessions_share_a_split() -> None:
    for user in ("u1", "u2", "u3", "u4", "u5"):
        assert len({assign_split(make_session(i, user=user), SplitPlan()) for i in range(20)}) == 1


def test_splits_never_change_between_versions() -> None:
    # Golden: were these to change, every published figure on a store split by hash would change too.
    plan = SplitPlan()
    found = "".join(assign_split(make_session(i, user=f"user-{i}"), plan)[:2] for i in range(40))
    assert found == GOLDEN_BY_USER
    by_session = SplitPlan(by="session", salt="other")
    assert "".join(assign_split(make_session(i), by_session)[:2] for i in range(40)) == GOLDEN_BY_SESSION


GOLDEN_BY_USER = "trtrtrtrtrtrtrtrtrtetrtetrtrtrvatrtrtrtrtetrtrvatetetrtevatrtrtrtrtrtetrtrtrtrtr"
GOLDEN_BY_SESSION = "trtrtrtrtrvatrtrtetrvatrtrtrtrtrvavatetrtrtrtrvatevatrtrtrtetrtrtrvatrtetrtrtrte"


def test_shares_are_met() -> None:
    plan = SplitPlan(validation=0.1, test=0.2)
    counts = Counter(assign_split(make_session(i, user=f"user {i}"), plan) for i in range(5000))
    assert counts["test"] == pytest.approx(1000, abs=90)
    assert counts["validation"] == pytest.approx(500, abs=70)


@pytest.mark.parametrize(("validation", "test", "expected"), [(0, 0, "train"), (1, 0, "validation"), (0, 1, "test")])
def test_a_share_of_one_takes_all(validation: float, test: float, expected: str) -> None:
    plan = SplitPlan(validation=validation, test=test)
    assert {assign_split(make_session(i), plan) for i in range(50)} == {expected}


def test_official_splits_are_kept_and_missing_ones_told() -> None:
    plan = SplitPlan(by="official")
    assert assign_split(msgspec.structs.replace(make_session(), official_split="test"), plan) == "test"
    with pytest.raises(BadSession, match="names no official split: split by user or by session instead"):
        assign_split(make_session(), plan)


@pytest.mark.parametrize("shares", [(-0.1, 0.2), (0.6, 0.6)])
def test_impossible_shares_are_refused(shares: tuple[float, float]) -> None:
    with pytest.raises(BadConfig, match="add up to at most 1"):
        SplitPlan(validation=shares[0], test=shares[1])
