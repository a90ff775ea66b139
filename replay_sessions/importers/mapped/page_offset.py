"""Which page belongs to an action: the logged one, or that of a neighbouring step? Decided by the audit's grounding.

A log may hold, beside each action, the page that the action led to. Then the clicked name stands on the page of the
step before (offset -1) and seldom on the action's own. Reported of ShopCART: 92% against 18%.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from replay_sessions.audit.judge import AuditLimits
from replay_sessions.audit.scan import OFFSETS, found_at_offsets
from replay_sessions.errors import ImportFailed
from replay_sessions.schema import Session

__all__ = ["PageOffset", "choose_page_offset"]

_LEAST_SHARE = 0.5  # below it the log is mapped wrongly rather than shifted
_WHERE = {-1: "one step earlier", 0: "on their own page", 1: "one step later"}


class PageOffset(msgspec.Struct, frozen=True):
    """The offset that was chosen, and why in one sentence."""

    offset: int
    reason: str


def choose_page_offset(sample: Iterable[Session], limits: AuditLimits | None = None) -> PageOffset:
    """The page offset that explains the logged targets of sessions that were read with offset 0.

    Their own pages are kept unless a neighbouring one explains more by the audit's `shift`.

    Raises:
        ImportFailed: No offset explains them.
    """
    limits = limits or AuditLimits()
    found, asked = Counter[int](), Counter[int]()
    sessions = 0
    for session in sample:
        sessions += 1
        for offset, (n_found, n_asked) in found_at_offsets(session).items():
            found[offset] += n_found
            asked[offset] += n_asked
    shares = {offset: found[offset] / asked[offset] if asked[offset] else 0.0 for offset in OFFSETS}
    told = f"of {asked[0]:,} targets in the first {sessions:,} sessions " + ", ".join(
        f"{shares[offset]:.0%} stand {_WHERE[offset]}" for offset in sorted(OFFSETS, key=lambda offset: -shares[offset])
    )
    best = max(OFFSETS, key=lambda offset: (shares[offset], offset == 0))
    if shares[0] + limits.shift >= shares[best]:
        best = 0
    if shares[best] < _LEAST_SHARE:
        raise ImportFailed(f"the page offset cannot be decided: {told}; give --page-offset, or mend the field mapping")
    return PageOffset(best, f"{told}; --page-offset says otherwise")
