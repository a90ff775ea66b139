"""What an audit is told and what it tells: its limits, findings and report (see judge.py)."""

import msgspec

from replay_sessions.errors import BadConfig

__all__ = ["AuditLimits", "AuditReport", "Finding", "Grounding", "Spread", "counted"]


class AuditLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What counts as a fault.

    Attributes:
        grounding: Least share of targets on their page.
        shift: By how much a neighbouring page may explain the targets better than their own.
        leakage: Greatest share of held-out sessions with a near-duplicate in train.
        context_tokens: Pages estimated to be longer are warned of.
        session_steps: Sessions of more steps are warned of: crawlers, or ids that tell no visits apart.
        private_pages: About how many pages are searched for private data, spread over the store.
    """

    grounding: float = 0.8
    shift: float = 0.2
    leakage: float = 0.01
    context_tokens: int = 32_768
    session_steps: int = 1000
    private_pages: int = 500

    def __post_init__(self) -> None:
        for name, share in (("grounding", self.grounding), ("shift", self.shift), ("leakage", self.leakage)):
            if not 0 <= share <= 1:
                raise BadConfig(f"{name} is {share}, and a share from 0 to 1 was expected, such as 0.8 for 80%")
        if self.context_tokens < 1:
            raise BadConfig(f"context_tokens is {self.context_tokens}, and at least 1 was expected")
        if self.session_steps < 1:
            raise BadConfig(f"session_steps is {self.session_steps}, and at least 1 was expected")
        if self.private_pages < 0:
            raise BadConfig(f"private_pages is {self.private_pages}, and 0 (none) or more was expected")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
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
    """A figure's distribution."""

    least: int
    median: int
    p90: int
    most: int


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything found out about a store; `faults` decide the exit code."""

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
    split_sessions: dict[str, int]
    session_steps: Spread | None
    page_characters: Spread | None
    session_characters: Spread | None
    left_out_steps: dict[str, int]
    set_aside: int


def counted(count: int, noun: str) -> str:
    """
    >>> counted(1, "session"), counted(1200, "session")
    ('1 session', '1,200 sessions')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
