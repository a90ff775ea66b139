"""Judges whether a store can be trusted: it reads every session, and lists and counts faults and doubtful data.

    scan_store   each session -> SessionFacts: its targets and whether they are on the page, digests, lengths
    audit_store  facts -> AuditReport: faults (exit code 1), warnings, counts
    commands/check.py prints the report, and rejects the faulty sessions

Grounding is the share of logged targets with their name on the page shown. A log with pages shifted by one step (as
reported of ShopCART) trains a model to click on elements that it cannot see. Offset -1 is the page one step earlier.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from replay_sessions.schema import Split
from replay_sessions.store import SessionStore
from replay_sessions.store.audit.findings import (
    CONTEXT_TOKENS,
    LEAST_STOPS,
    LONG_SESSION_STEPS,
    MIN_GROUNDING,
    MOST_LEAKAGE,
    MOST_REPEATS,
    MOST_SHIFT,
    MOST_STOP_AUC,
    PRIVATE_PAGES,
    AuditReport,
    Finding,
    Grounding,
    Spread,
    pluralize,
)
from replay_sessions.store.audit.repetitions import find_exact_duplicates, find_leaks
from replay_sessions.store.audit.scan import SessionFacts, add_counts, scan_store
from replay_sessions.store.audit.step_numbers import compute_stop_auc
from replay_sessions.store.audit.typed_texts import find_rare
from replay_sessions.store.manifest import describe_late_rationales, format_counts
from replay_sessions.store.splits import SPLITS

_CHARACTERS_PER_TOKEN = 3.3  # estimate for simplified HTML, only used to report pages that are far too long


def audit_store(store: SessionStore, *, private_pages: int = PRIVATE_PAGES) -> AuditReport:
    """Reads every session of a store and reports on the store.

    Args:
        private_pages: Approximate number of pages that are searched for private data, spread over the store.
    """
    manifest = store.manifest
    facts = list(scan_store(store, private_pages=private_pages))
    readable = [fact for fact in facts if fact.problem is None]
    pairs = find_exact_duplicates(fact for fact in readable if not fact.may_coincide)
    copies = {copy for _, copy in pairs}
    leaks = find_leaks(store, [fact for fact in readable if fact.session_id not in copies])
    grounding, shares = _grounding(readable), _offset_shares(readable)
    held_out = len(store) - len(store.session_ids("train"))
    stop_auc = compute_stop_auc(readable)
    typed = find_rare((store.user_id(fact.session_id), fact.typed_texts) for fact in readable)
    faults = [*_unreadable(facts), *_ungrounded(readable, grounding)]
    if shift := describe_shift(shares):
        faults.append(Finding("shifted", shift))
    warnings = [Finding("import", message) for message in manifest.warnings]
    for findings, is_fault in (
        (_duplicates(pairs), len(pairs) > MOST_REPEATS * len(store)),
        (_shared_users(store), manifest.split_plan.by == "user"),  # otherwise the plan allows it
        (_leaks(leaks, held_out), len(leaks) > MOST_LEAKAGE * held_out),
    ):
        (faults if is_fault else warnings).extend(findings)
    return AuditReport(
        store=str(store.path),
        fingerprint=store.fingerprint,
        sessions=len(store),
        users=manifest.users,
        steps=manifest.steps,
        faults=tuple(faults),
        warnings=(*warnings, *_find_doubts(store, readable, stop_auc)),
        grounding=grounding,
        grounding_by_offset={f"{offset:+d}": share for offset, share in shares.items()},
        action_counts=dict(sorted(sum((Counter(fact.action_counts) for fact in readable), Counter[str]()).items())),
        split_sessions=manifest.split_sessions,
        session_steps=_spread([len(fact.page_characters) for fact in readable]),
        stop_auc=stop_auc,
        page_characters=_spread([length for fact in readable for length in fact.page_characters]),
        session_characters=_spread([sum(fact.page_characters) for fact in readable]),
        left_out_steps=manifest.left_out_steps,
        rejected=manifest.rejected,
        typed_texts=len(typed.every),
        rare_texts=len(typed.rare),
    )


def _find_doubts(store: SessionStore, facts: Sequence[SessionFacts], stop_auc: float | None) -> Iterator[Finding]:
    """Yields what is never a fault."""
    yield from _doubtful_steps(facts)
    yield from _stops_by_number(stop_auc, sum(len(fact.stops) for fact in facts if fact.split != "train"))
    yield from _late_rationales(store, facts)
    yield from _endless(store)
    yield from _over_context(facts)
    yield from _private(facts)
    yield from _empty_splits(store)


def _unreadable(facts: Sequence[SessionFacts]) -> Iterator[Finding]:
    problems = {fact.session_id: fact.problem for fact in facts if fact.problem is not None}
    if problems:
        message = f"{pluralize(len(problems), 'session')} cannot be read: {next(iter(problems.values()))}"
        yield Finding("unreadable", message, tuple(problems))


def _grounding(facts: Iterable[SessionFacts]) -> tuple[Grounding, ...]:
    counts = add_counts(
        ((fact.source, action_type), count)
        for fact in facts
        for (action_type, offset), count in fact.matches.items()
        if offset == 0
    )
    return tuple(
        Grounding(source=source, action_type=action_type, targets=targets, on_page=on_page)
        for (source, action_type), (on_page, targets) in sorted(counts.items())
    )


def _ungrounded(facts: Sequence[SessionFacts], grounding: Sequence[Grounding]) -> Iterator[Finding]:
    for row in grounding:
        if row.share >= MIN_GROUNDING:
            continue
        message = (
            f"{row.on_page:,} of {row.targets:,} {row.action_type} targets of {row.source} ({row.share:.0%}) stand on "
            f"the page shown, and at least {MIN_GROUNDING:.0%} were expected"
        )
        sessions = []
        for fact in facts:
            hits, total = fact.matches.get((row.action_type, 0), (0, 0))
            if fact.source == row.source and hits < MIN_GROUNDING * total:
                sessions.append(fact.session_id)
        yield Finding("ungrounded", message, tuple(sessions))


def _offset_shares(facts: Iterable[SessionFacts]) -> dict[int, float]:
    """Returns by offset the share of targets on the page `offset` steps away, over the steps that have such a page."""
    counts = add_counts((offset, count) for fact in facts for (_, offset), count in fact.matches.items())
    return {offset: round(on_page / steps, 4) for offset, (on_page, steps) in sorted(counts.items())}


def describe_shift(shares: Mapping[int, float]) -> str | None:
    """Returns a message with a remedy if the pages are shifted by a step, otherwise None.

    Args:
        shares: By page offset, the share of targets on the page at that offset.
    """
    best = max(shares, key=lambda offset: shares[offset], default=0)
    if not best or shares[best] <= shares.get(0, 0) + MOST_SHIFT:
        return None
    where = "one step earlier" if best < 0 else "one step later"
    return (
        f"pages look shifted, offset {best:+d}: {shares[best]:.0%} of targets stand on the page {where}, "
        f"{shares.get(0, 0):.0%} on their own; import again with that offset (`offset = {best}` under [page] in "
        f"the field mapping; `import shopcart --page-offset {best}`)"
    )


def _duplicates(pairs: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    if pairs:
        first, copy = pairs[0]
        message = (
            f"{pluralize(len(pairs), 'repeated session')}, exactly as another, such as {copy!r} repeating {first!r}"
        )
        yield Finding("duplicates", message, tuple(copy for _, copy in pairs))


def _shared_users(store: SessionStore) -> Iterator[Finding]:
    splits: defaultdict[str, set[str]] = defaultdict(set)
    for row in store.index():
        splits[row.user_id].add(row.split)
    shared = {user for user, user_splits in splits.items() if len(user_splits) > 1}
    if shared:
        by = store.manifest.split_plan.by
        message = f"{len(shared):,} of {len(splits):,} users have sessions in more than one split (split by {by})"
        yield Finding("shared_users", message, tuple(row.session_id for row in store.index() if row.user_id in shared))


def _leaks(leaks: Sequence[tuple[str, str]], held_out: int) -> Iterator[Finding]:
    if leaks:
        message = (
            f"{len(leaks):,} of {held_out:,} held-out sessions nearly repeat one in train, such as "
            f"{leaks[0][0]!r} repeating {leaks[0][1]!r}; --repair leaves them out"
        )
        yield Finding("near_duplicates", message, tuple(held_out_id for held_out_id, _ in leaks))


def _doubtful_steps(facts: Sequence[SessionFacts]) -> Iterator[Finding]:
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for fact in facts:
        for reason in fact.doubts:
            reasons[reason].append(fact.session_id)
    for reason, sessions in sorted(reasons.items()):
        yield Finding("doubtful_steps", f"{pluralize(len(sessions), 'session')} with {reason}", tuple(sessions))


def _stops_by_number(stop_auc: float | None, stops: int) -> Iterator[Finding]:
    if stop_auc is not None and stop_auc >= MOST_STOP_AUC and stops >= LEAST_STOPS:
        message = (
            f"the number of the step alone tells where shoppers leave (AUC {stop_auc:.2f}): were visits picked "
            "by length, or is all else that is done at such steps inferred, and so not scored without --inferred?"
        )
        yield Finding("stops_by_number", message)


def _late_rationales(store: SessionStore, facts: Sequence[SessionFacts]) -> Iterator[Finding]:
    held_out: dict[Split, frozenset[str]] = {
        split: frozenset[str]().union(*(fact.rationale_sources for fact in facts if fact.split == split))
        for split in SPLITS
        if split != "train"
    }
    if message := describe_late_rationales(store.manifest, held_out):
        yield Finding("late_rationales", message)


def _endless(store: SessionStore) -> Iterator[Finding]:
    rows = sorted(store.index(), key=lambda row: -row.steps)
    endless = [row for row in rows if row.steps > LONG_SESSION_STEPS]
    if endless:
        message = (
            f"{pluralize(len(endless), 'session')} of more than {LONG_SESSION_STEPS:,} steps, the longest of "
            f"{endless[0].steps:,}: a crawler's, or of a log whose session ids tell no visits apart?"
        )
        yield Finding("endless", message, tuple(row.session_id for row in endless))


def _over_context(facts: Sequence[SessionFacts]) -> Iterator[Finding]:
    characters = int(CONTEXT_TOKENS * _CHARACTERS_PER_TOKEN)
    pages = [fact.session_id for fact in facts for length in fact.page_characters if length > characters]
    sessions = sum(sum(fact.page_characters) > characters for fact in facts)
    if pages or sessions:
        message = (
            f"about {pluralize(len(pages), 'page')} alone, and {pluralize(sessions, 'session')} as a whole, would not "
            f"fit a context of {CONTEXT_TOKENS:,} tokens (estimated at {_CHARACTERS_PER_TOKEN} characters a token)"
        )
        yield Finding("over_context", message, tuple(dict.fromkeys(pages)))


def _private(facts: Sequence[SessionFacts]) -> Iterator[Finding]:
    if kinds := sum((Counter(fact.private) for fact in facts), Counter[str]()):
        sessions = tuple(fact.session_id for fact in facts if fact.private)
        pages = pluralize(sum(fact.searched_pages for fact in facts), "page")
        message = (
            f"what looks like private data was found in {pluralize(len(sessions), 'session')} "
            f"({format_counts(dict(kinds.most_common()))}; {pages} searched)"
        )
        yield Finding("private_data", message, sessions)


def _empty_splits(store: SessionStore) -> Iterator[Finding]:
    if empty := [split for split in SPLITS if not store.session_ids(split)]:
        yield Finding("empty_split", f"no session is in {' and '.join(empty)}")


def _spread(values: list[int]) -> Spread | None:
    if not values:
        return None
    ordered = sorted(values)
    return Spread(*(ordered[int(share * (len(ordered) - 1))] for share in (0, 0.1, 0.5, 0.9, 1)))
