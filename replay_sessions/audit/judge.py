"""Can a store be trusted? Every session is read and what is wrong, or looks wrong, is found and counted.

    scan_store   each session -> SessionFacts: its targets and whether they stand on the page, digests, lengths
    audit_store  facts -> AuditReport: faults (exit code 1), warnings, figures
    terminal_table.py prints it; repair.py sets the sessions at fault aside

Grounding: the share of logged targets whose name stands on the page shown. A log whose pages are shifted by one step
(reported of ShopCART) trains a model to click on what it cannot see; offset -1 asks after the page one step earlier.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from replay_sessions.audit.duplicates import Leak, exact_duplicates, leaks_across_splits
from replay_sessions.audit.findings import AuditLimits, AuditReport, Finding, Grounding, Spread, counted
from replay_sessions.audit.scan import OFFSETS, SessionFacts, scan_store
from replay_sessions.splits import SPLITS
from replay_sessions.store import SessionStore
from replay_sessions.store.manifest import REMEDY

__all__ = ["AuditLimits", "AuditReport", "Finding", "Grounding", "audit_size", "audit_store"]

_CHARACTERS_PER_TOKEN = 3.3  # of simplified HTML, roughly; only to tell which pages are far too long


def audit_store(
    store: SessionStore,
    limits: AuditLimits | None = None,
    *,
    workers: int = 1,
    on_progress: Callable[[int], None] | None = None,
) -> AuditReport:
    """Reads every session of a store and reports on it.

    Args:
        workers: Processes that read; small stores are read in this one.
        on_progress: Told how much was done since the last call; in all it is `audit_size`, less where sessions repeat.
    """
    limits = limits or AuditLimits()
    facts = list(scan_store(store, private_pages=limits.private_pages, workers=workers, on_progress=on_progress))
    read = [fact for fact in facts if fact.problem is None]
    doubled = exact_duplicates(read)
    copies = {copy for _, copy in doubled}
    leaks = leaks_across_splits(store, [fact for fact in read if fact.session_id not in copies], on_progress)
    faults = [
        *(_unreadable(facts) or _altered(store)),
        *_ungrounded(read, limits),
        *_shifted(read, limits),
        *_duplicates(doubled),
        *_shared_users(store, fault=True),
        *_leaks(store, leaks, limits, fault=True),
    ]
    warnings = [
        *_shared_users(store, fault=False),
        *_leaks(store, leaks, limits, fault=False),
        *_doubtful_steps(read),
        *_endless(store, limits),
        *_over_context(read, limits),
        *_private(read),
        *_empty_splits(store),
    ]
    return AuditReport(
        store=str(store.path),
        fingerprint=store.fingerprint,
        sessions=len(store),
        users=store.manifest.users,
        steps=sum(row.steps for row in store.index()),
        faults=tuple(faults),
        warnings=tuple(warnings),
        grounding=_grounding(read),
        grounding_by_offset={f"{offset:+d}": share for offset, share in _offset_shares(read).items()},
        action_counts=dict(sorted(_total(fact.action_counts for fact in read).items())),
        split_sessions={split: len(store.session_ids(split)) for split in SPLITS},
        session_steps=_spread([fact.steps for fact in read]),
        page_characters=_spread([length for fact in read for length in fact.page_characters]),
        session_characters=_spread([sum(fact.page_characters) for fact in read]),
        left_out_steps=store.manifest.left_out_steps,
        set_aside=store.manifest.set_aside,
    )


def audit_size(store: SessionStore) -> int:
    """What an audit does, for its progress: every session is read, and held-out ones are compared with train."""
    return len(store) + len(store) - len(store.session_ids("train"))


def _finding(code: str, message: str, sessions: Iterable[str]) -> Finding:
    return Finding(code=code, message=message, sessions=tuple(sessions))


def _unreadable(facts: Sequence[SessionFacts]) -> list[Finding]:
    bad = [fact for fact in facts if fact.problem is not None]
    if not bad:
        return []
    message = f"{counted(len(bad), 'session')} cannot be read: {bad[0].problem}"
    return [_finding("unreadable", message, (fact.session_id for fact in bad))]


def _altered(store: SessionStore) -> list[Finding]:
    """Files that hold the right sessions and yet are not those that were written."""
    files = store.altered_shards()
    if not files:
        return []
    message = f"{counted(len(files), 'shard')} not as written, byte for byte, such as {files[0]}; {REMEDY}"
    return [_finding("altered", message, ())]


def _grounding(facts: Iterable[SessionFacts]) -> tuple[Grounding, ...]:
    targets: Counter[tuple[str, str]] = Counter()
    on_page: Counter[tuple[str, str]] = Counter()
    for fact in facts:
        for action_type, count in fact.targets.items():
            targets[fact.source, action_type] += count
            on_page[fact.source, action_type] += fact.on_page.get(action_type, 0)
    return tuple(
        Grounding(source=source, action_type=action_type, targets=count, on_page=on_page[source, action_type])
        for (source, action_type), count in sorted(targets.items())
    )


def _ungrounded(facts: Sequence[SessionFacts], limits: AuditLimits) -> list[Finding]:
    findings = []
    for row in _grounding(facts):
        if row.share >= limits.grounding:
            continue
        message = (
            f"{row.on_page:,} of {row.targets:,} {row.action_type} targets of {row.source} ({row.share:.0%}) stand on "
            f"the page shown, and at least {limits.grounding:.0%} were expected"
        )
        bad = [
            fact.session_id
            for fact in facts
            if fact.source == row.source
            and fact.on_page.get(row.action_type, 0) < limits.grounding * fact.targets.get(row.action_type, 0)
        ]
        findings.append(_finding("ungrounded", message, bad))
    return findings


def _offset_shares(facts: Iterable[SessionFacts]) -> dict[int, float]:
    """Share of targets on the page `offset` steps away, over the steps that have a page there."""
    found: Counter[int] = Counter()
    asked: Counter[int] = Counter()
    for fact in facts:
        for offset, (n_found, n_asked) in fact.on_page_at.items():
            found[offset] += n_found
            asked[offset] += n_asked
    return {offset: round(found[offset] / asked[offset], 4) for offset in OFFSETS if asked[offset]}


def _shifted(facts: Sequence[SessionFacts], limits: AuditLimits) -> list[Finding]:
    shares = _offset_shares(facts)
    best = max(shares, key=lambda offset: shares[offset], default=0)
    if not best or shares[best] <= shares.get(0, 0) + limits.shift:
        return []
    where = "one step earlier" if best < 0 else "one step later"
    message = (
        f"pages look shifted, offset {best:+d}: {shares[best]:.0%} of targets stand on the page {where}, "
        f"{shares.get(0, 0):.0%} on their own; import again with that offset (`offset = {best}` under [page] in the "
        f"field mapping; `import shopcart --page-offset {best}`)"
    )
    return [_finding("shifted", message, ())]


def _duplicates(doubled: Sequence[tuple[str, str]]) -> list[Finding]:
    if not doubled:
        return []
    first, copy = doubled[0]
    message = f"{counted(len(doubled), 'repeated session')}, exactly as another, such as {copy!r} repeating {first!r}"
    return [_finding("duplicates", message, (copy for _, copy in doubled))]


def _shared_users(store: SessionStore, *, fault: bool) -> list[Finding]:
    """Users on both sides are a fault unless the plan splits by something else than users."""
    if fault != (store.manifest.split_plan.by == "user"):
        return []
    splits: defaultdict[str, set[str]] = defaultdict(set)
    for row in store.index():
        splits[row.user_id].add(row.split)
    shared = {user for user, where in splits.items() if len(where) > 1}
    if not shared:
        return []
    ids = [row.session_id for row in store.index() if row.user_id in shared]
    message = f"{len(shared):,} of {len(splits):,} users have sessions in more than one split"
    if not fault:
        message += f" (split by {store.manifest.split_plan.by})"
    return [_finding("shared_users", message, ids)]


def _leaks(store: SessionStore, leaks: Sequence[Leak], limits: AuditLimits, *, fault: bool) -> list[Finding]:
    held_out = len(store) - len(store.session_ids("train"))
    if not leaks or fault != (len(leaks) > limits.leakage * held_out):
        return []
    example = leaks[0]
    message = (
        f"{len(leaks):,} of {held_out:,} held-out sessions nearly repeat one in train, such as {example.held_out!r} "
        f"repeating {example.train!r}"
    )
    return [_finding("near_duplicates", message, (leak.held_out for leak in leaks))]


def _doubtful_steps(facts: Sequence[SessionFacts]) -> list[Finding]:
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for fact in facts:
        for reason in fact.doubts:
            reasons[reason].append(fact.session_id)
    return [
        _finding("doubtful_steps", f"{counted(len(ids), 'session')} with {reason}", ids)
        for reason, ids in sorted(reasons.items())
    ]


def _endless(store: SessionStore, limits: AuditLimits) -> list[Finding]:
    rows = sorted(store.index(), key=lambda row: -row.steps)
    endless = [row for row in rows if row.steps > limits.session_steps]
    if not endless:
        return []
    message = (
        f"{counted(len(endless), 'session')} of more than {limits.session_steps:,} steps, the longest of "
        f"{endless[0].steps:,}: a crawler's, or of a log whose session ids tell no visits apart?"
    )
    return [_finding("endless", message, (row.session_id for row in endless))]


def _over_context(facts: Sequence[SessionFacts], limits: AuditLimits) -> list[Finding]:
    characters = int(limits.context_tokens * _CHARACTERS_PER_TOKEN)
    pages = [fact.session_id for fact in facts for length in fact.page_characters if length > characters]
    sessions = sum(sum(fact.page_characters) > characters for fact in facts)
    if not pages and not sessions:
        return []
    message = (
        f"about {counted(len(pages), 'page')} alone, and {counted(sessions, 'session')} as a whole, would not fit a "
        f"context of {limits.context_tokens:,} tokens (estimated at {_CHARACTERS_PER_TOKEN} characters a token)"
    )
    return [_finding("over_context", message, dict.fromkeys(pages))]


def _private(facts: Sequence[SessionFacts]) -> list[Finding]:
    found = _total(fact.private for fact in facts)
    if not found:
        return []
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.most_common())
    searched = sum(fact.searched_pages for fact in facts)
    sessions = [fact.session_id for fact in facts if fact.private]
    message = (
        f"what looks like private data was found in {counted(len(sessions), 'session')} ({kinds}; "
        f"{counted(searched, 'page')} searched)"
    )
    return [_finding("private_data", message, sessions)]


def _empty_splits(store: SessionStore) -> list[Finding]:
    empty = [split for split in SPLITS if not store.session_ids(split)]
    return [_finding("empty_split", f"no session is in {' and '.join(empty)}", ())] if empty else []


def _total(counts: Iterable[dict[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return total


def _spread(values: list[int]) -> Spread | None:
    if not values:
        return None
    ordered = sorted(values)
    at = [ordered[int(share * (len(ordered) - 1))] for share in (0, 0.5, 0.9, 1)]
    return Spread(*at)
