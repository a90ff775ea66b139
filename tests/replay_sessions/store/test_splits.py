from collections import Counter
from datetime import date

import msgspec
import pytest

from replay_sessions.foundation.errors import BadConfig, BadSession
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.splits import SplitPlan, assign_split
from tests.replay_sessions.conftest import make_session


def test_splits_never_change_between_versions():
    # Golden: were these to change, every published figure on a store split by hash would change too.
    plan = SplitPlan()
    found = "".join(assign_split(make_session(i, user=f"user-{i}"), plan)[:2] for i in range(40))
    assert found == GOLDEN_BY_USER
    by_session = SplitPlan(by="session", salt="other")
    assert "".join(assign_split(make_session(i), by_session)[:2] for i in range(40)) == GOLDEN_BY_SESSION


GOLDEN_BY_USER = "trtrtrtrtrtrtrtrtrtetrtetrtrtrvatrtrtrtrtetrtrvatetetrtevatrtrtrtrtrtetrtrtrtrtr"
GOLDEN_BY_SESSION = "trtrtrtrtrvatrtrtetrvatrtrtrtrtrvavatetrtrtrtrvatevatrtrtrtetrtrtrvatrtetrtrtrte"


def test_shares_are_met():
    plan = SplitPlan(validation=0.1, test=0.2)
    counts = Counter(assign_split(make_session(i, user=f"user {i}"), plan) for i in range(5000))
    assert counts["test"] == pytest.approx(1000, abs=90)
    assert counts["validation"] == pytest.approx(500, abs=70)


@pytest.mark.parametrize(("validation", "test", "expected"), [(0, 0, "train"), (1, 0, "validation"), (0, 1, "test")])
def test_a_share_of_one_takes_all(validation, test, expected):
    plan = SplitPlan(validation=validation, test=test)
    assert {assign_split(make_session(i), plan) for i in range(50)} == {expected}


def test_official_splits_are_kept_and_missing_ones_told():
    plan = SplitPlan(by="official")
    assert assign_split(msgspec.structs.replace(make_session(), official_split="test"), plan) == "test"
    with pytest.raises(BadSession, match="names no official split: split by user or by session instead"):
        assign_split(make_session(), plan)


@pytest.mark.parametrize("shares", [(-0.1, 0.2), (0.6, 0.6)])
def test_impossible_shares_are_refused(shares):
    with pytest.raises(BadConfig, match="add up to at most 1"):
        SplitPlan(validation=shares[0], test=shares[1])


BY_DATE = SplitPlan(by="date", test_from=date(2008, 6, 1), test=0.9)


def begun(session: Session, timestamp: str | None) -> Session:
    steps = (msgspec.structs.replace(session.steps[0], timestamp=timestamp), *session.steps[1:])
    return msgspec.structs.replace(session, steps=steps)


def test_sessions_from_the_first_day_of_test_on_are_test():
    sessions = [make_session(i, user=f"user {i}") for i in range(1000)]
    for timestamp in ("2008-06-01T00:00:00+00:00", "2008-06-30", "2009-01-01"):
        assert {assign_split(begun(session, timestamp), BY_DATE) for session in sessions} == {"test"}
    counts = Counter(assign_split(begun(session, "2008-05-31T23:59:59"), BY_DATE) for session in sessions)
    assert counts.keys() == {"train", "validation"}
    assert counts["validation"] == pytest.approx(100, abs=30)


@pytest.mark.parametrize("timestamp", [None, "1212278400", "yesterday"])
def test_a_session_without_a_date_has_no_split_by_date(timestamp):
    with pytest.raises(BadSession, match="an ISO 8601 date was expected"):
        assign_split(begun(make_session(), timestamp), BY_DATE)


def test_a_first_day_of_test_belongs_to_the_split_by_date_alone():
    with pytest.raises(BadConfig, match="--split-by date --test-from"):
        SplitPlan(by="date")
    with pytest.raises(BadConfig, match="no other split has it"):
        SplitPlan(by="user", test_from=date(2008, 6, 1))


def test_a_store_keeps_its_split_plan(tmp_path):
    for name, plan in (("dated", BY_DATE), ("plain", SplitPlan())):
        with StoreWriter(tmp_path / name, source="test", splits=plan) as writer:
            writer.write(begun(make_session(), "2008-06-02"))
        assert SessionStore.open(tmp_path / name).manifest.split_plan == plan
