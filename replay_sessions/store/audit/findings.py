"""The limits, findings and report of an audit (see judge.py)."""

import msgspec

from replay_sessions.foundation.records import Record
from replay_sessions.schema import Split

MIN_GROUNDING = 0.8  # the lowest acceptable share of targets on their page
MOST_SHIFT = 0.2  # the largest acceptable lead of a neighbouring page's share of targets over the own page's share
MOST_LEAKAGE = 0.01  # the highest acceptable share of held-out sessions with a near-duplicate in train
MOST_REPEATS = 0.001  # the highest acceptable share of sessions that repeat another session exactly
CONTEXT_TOKENS = 32_768  # pages with a longer estimate cause a warning
MOST_STOP_AUC = 0.8  # the highest acceptable AUC of predicting from the step's number whether the shopper leaves
LEAST_STOPS = 30  # the AUC is judged if at least this many held-out sessions end with a terminate
LONG_SESSION_STEPS = 1000  # longer sessions may be a crawler's, or several visits with the same id
PRIVATE_PAGES = 500  # approximate number of pages that are searched for private data, spread over the store


class Finding(msgspec.Struct, frozen=True):
    """A problem of a store, and the sessions that have it."""

    code: str
    message: str
    sessions: tuple[str, ...] = ()


class Grounding(Record):
    """The count of logged targets on the pages shown, for one source and type of action.

    Attributes:
        targets: Number of logged names.
        on_page: Number of them that are on the page shown.
    """

    source: str
    action_type: str
    targets: int
    on_page: int

    @property
    def share(self) -> float:
        return self.on_page / self.targets


class Spread(msgspec.Struct, frozen=True):
    """The distribution of a number over sessions or pages."""

    least: int
    p10: int
    median: int
    p90: int
    most: int


class AuditReport(Record):
    """The results of an audit; any `faults` set exit code 1.

    Attributes:
        typed_texts: Number of distinct typed texts.
        rare_texts: Number of those that fewer than five users typed.
    """

    store: str
    fingerprint: str
    sessions: int
    users: int
    steps: int
    faults: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    grounding: tuple[Grounding, ...]
    grounding_by_offset: dict[str, float]
    action_counts: dict[str, int]
    split_sessions: dict[Split, int]
    session_steps: Spread | None
    stop_auc: float | None  # step_numbers.py
    page_characters: Spread | None
    session_characters: Spread | None
    left_out_steps: dict[str, int]
    rejected: int
    typed_texts: int
    rare_texts: int


def pluralize(count: int, noun: str) -> str:
    """Formats a count with its noun.

    >>> pluralize(1, "session"), pluralize(1200, "session")
    ('1 session', '1,200 sessions')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
