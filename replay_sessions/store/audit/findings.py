"""The limits, findings and report of an audit (see judge.py)."""

import msgspec

from replay_sessions.foundation.records import Record
from replay_sessions.schema import Split

MIN_GROUNDING = 0.8  # the least share of targets on their page
MOST_SHIFT = 0.2  # by how much a neighbouring page may explain the targets better than their own
MOST_LEAKAGE = 0.01  # the greatest share of held-out sessions with a near-duplicate in train
MOST_REPEATS = 0.001  # the greatest share of sessions that repeat another exactly
CONTEXT_TOKENS = 32_768  # pages estimated to be longer are warned of
MOST_STOP_AUC = 0.8  # how well the step's number alone may tell where shoppers leave, over at least
LEAST_STOPS = 30  # held-out sessions that end so
LONG_SESSION_STEPS = 1000  # a crawler's, or ids shared by several visits
PRIVATE_PAGES = 500  # about how many pages are searched for private data, spread over the store


class Finding(msgspec.Struct, frozen=True):
    """Something wrong, and in which sessions."""

    code: str
    message: str
    sessions: tuple[str, ...] = ()


class Grounding(Record):
    """Of `targets` logged names of a type, how many stand on the page shown."""

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


class StepNumbers(Record):
    """Predictions by the number of a step alone (step_numbers.py).

    Attributes:
        stop_auc: The probability that a held-out step at which the shopper leaves has a number at which more leave in
            train than one at which he goes on; 0.5 says nothing. None: there is no such pair.
        exact_match: At how many held-out steps the shopper did what is most frequent in train at that number.
        majority: The same for what is most frequent in train at any number. None: train or the rest is empty.
    """

    stop_auc: float | None
    exact_match: float | None
    majority: float | None


class AuditReport(Record):
    """The results of an audit; `faults` decide the exit code."""

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
    step_numbers: StepNumbers
    page_characters: Spread | None
    session_characters: Spread | None
    left_out_steps: dict[str, int]
    rejected: int


def pluralize(count: int, noun: str) -> str:
    """
    >>> pluralize(1, "session"), pluralize(1200, "session")
    ('1 session', '1,200 sessions')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
