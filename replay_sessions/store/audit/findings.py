"""What goes into an audit and what comes out of it: its limits, findings and report (see judge.py)."""

import msgspec

from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.schema import Split

LONG_SESSION_STEPS = 1000  # a crawler's, or ids shared by several visits


class AuditLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What counts as a fault.

    Attributes:
        grounding: Least share of targets on their page.
        shift: By how much a neighbouring page may explain the targets better than their own.
        leakage: Greatest share of held-out sessions with a near-duplicate in train.
        repeats: Greatest share of sessions that repeat another exactly.
        context_tokens: Pages estimated to be longer are warned of.
        session_steps: Sessions of more steps are warned of: crawlers, or ids shared by several visits.
        private_pages: About how many pages are searched for private data, spread over the store.
    """

    grounding: float = 0.8
    shift: float = 0.2
    leakage: float = 0.01
    repeats: float = 0.001
    context_tokens: int = 32_768
    session_steps: int = LONG_SESSION_STEPS
    private_pages: int = 500

    def __post_init__(self) -> None:
        for name in ("grounding", "shift", "leakage", "repeats"):
            if not 0 <= (share := getattr(self, name)) <= 1:
                raise BadConfig(f"{name} is {share}, and a share from 0 to 1 was expected, such as 0.8 for 80%")
        check_at_least(1, context_tokens=self.context_tokens, session_steps=self.session_steps)
        check_at_least(0, private_pages=self.private_pages)


class Finding(msgspec.Struct, frozen=True):
    """Something wrong, and in which sessions."""

    code: str
    message: str
    sessions: tuple[str, ...] = ()


class Grounding(msgspec.Struct, frozen=True, kw_only=True):
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
    median: int
    p90: int
    most: int


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
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
    page_characters: Spread | None
    session_characters: Spread | None
    left_out_steps: dict[str, int]
    rejected: int


def counted(count: int, noun: str) -> str:
    """
    >>> counted(1, "session"), counted(1200, "session")
    ('1 session', '1,200 sessions')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
