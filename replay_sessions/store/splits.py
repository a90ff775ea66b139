"""Which split a session belongs to: train, validation or test, from a stable hash.

The hash depends on the user's (or session's) id and the salt alone: not on order, process, platform or the other
sessions. So a store that grows keeps everyone where they were, and parallel imports need not agree on anything.
"""

from hashlib import blake2b
from typing import Literal

import msgspec

from replay_sessions.foundation.errors import BadConfig, BadSession
from replay_sessions.schema import Session, Split

SplitBy = Literal["user", "session", "official"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


class SplitPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How sessions are split.

    Attributes:
        by: "user" keeps all of a person's sessions on one side; "official" keeps what the publisher chose.
        validation: Share of users (or sessions) for validation; not used by "official".
        test: Share of users (or sessions) for test; not used by "official".
        salt: Another salt gives another draw.
    """

    by: SplitBy = "user"
    validation: float = 0.1
    test: float = 0.2
    salt: str = "shop-r1"

    def __post_init__(self) -> None:
        if min(self.validation, self.test) < 0 or self.validation + self.test > 1:
            raise BadConfig(
                f"shares of validation {self.validation} and test {self.test} must be 0 or more and add up to at most 1"
            )


def assign_split(session: Session, plan: SplitPlan) -> Split:
    """The split of a session under a plan.

    Raises:
        BadSession: The plan is "official" and the session names no split.
    """
    if plan.by == "official":
        if session.official_split is None:
            raise BadSession(
                f"session {session.session_id!r} names no official split: split by user or by session instead"
            )
        return session.official_split
    key = session.user_id if plan.by == "user" else session.session_id
    digest = blake2b(f"{plan.salt}\0{key}".encode(), digest_size=8).digest()
    quantile = int.from_bytes(digest, "big") / 2**64
    if quantile < plan.test:
        return "test"
    return "validation" if quantile < plan.test + plan.validation else "train"
