"""Assigns each session to train, validation or test.

A session's split depends either on a stable hash of the user's (or session's) id and the salt, or on the session's
date. It does not depend on order, process, platform or the other sessions. A store that grows thus keeps every session
in its split, and parallel imports need no coordination.
"""

from datetime import date
from hashlib import blake2b
from typing import Literal

from replay_sessions.foundation.errors import BadConfig, BadSession
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Session, Split

SplitBy = Literal["user", "session", "official", "date"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


class SplitPlan(Config):
    """A plan for splitting sessions.

    Attributes:
        by: "user" puts all sessions of a user into one split. "official" keeps the publisher's splits. "date" puts
            sessions that begin on `test_from` or later into test, regardless of the user.
        validation: Share of users (or sessions) for validation, with "date" of the users before `test_from`; not used
            by "official".
        test: Share of users (or sessions) for test; not used by "official" and "date".
        salt: Text that is hashed with the id; another salt gives another draw.
        test_from: The first day of test; only used by "date".
    """

    by: SplitBy = "user"
    validation: float = 0.1
    test: float = 0.2
    salt: str = "shop-r1"
    test_from: date | None = None

    def __post_init__(self) -> None:
        if (self.by == "date") != (self.test_from is not None):
            raise BadConfig(
                f"split by {self.by} with first day of test {self.test_from}: a split by date needs such a day, "
                "as in --split-by date --test-from 2025-06-01, and no other split has it"
            )
        if min(self.validation, self.test) < 0 or not self.validation + self.test <= 1:  # NaN too
            raise BadConfig(
                f"shares of validation {self.validation} and test {self.test} must be 0 or more and add up to at most 1"
            )


def assign_split(session: Session, plan: SplitPlan) -> Split:
    """Returns the split of a session under a plan.

    Raises:
        BadSession: The plan is "official" and the session has no official split, or it is "date" and it has no date.
    """
    if plan.by == "official":
        if session.official_split is None:
            raise BadSession(
                f"session {session.session_id!r} names no official split: split by user or by session instead"
            )
        return session.official_split
    if plan.test_from is not None and _first_day(session) >= plan.test_from:
        return "test"
    key = session.session_id if plan.by == "session" else session.user_id
    digest = blake2b(f"{plan.salt}\0{key}".encode(), digest_size=8).digest()
    quantile = int.from_bytes(digest, "big") / 2**64
    test = 0 if plan.by == "date" else plan.test
    if quantile < test:
        return "test"
    return "validation" if quantile < test + plan.validation else "train"


def _first_day(session: Session) -> date:
    timestamp = session.steps[0].timestamp
    try:
        return date.fromisoformat((timestamp or "")[:10])
    except ValueError as error:
        raise BadSession(
            f"session {session.session_id!r} begins at {timestamp!r}, and an ISO 8601 date was expected: split by user "
            "or by session instead"
        ) from error
