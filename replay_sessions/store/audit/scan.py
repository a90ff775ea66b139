"""Reduces each session of a store to the few facts that the audit counts (see judge.py)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import TypeVar

import msgspec

from replay_sessions.elements import page_names
from replay_sessions.foundation.errors import BadSession
from replay_sessions.foundation.progress import track
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.times import seconds
from replay_sessions.private_data import kinds_in_page, kinds_in_text, kinds_in_url
from replay_sessions.schema import Session, Split, Terminate, TypeAndSubmit, action_type
from replay_sessions.store import SessionStore
from replay_sessions.store.audit.typed_texts import normal_texts

Key = TypeVar("Key")
OFFSETS = (-1, 0, 1)
_COINCIDENCE_ACTIONS = 8  # fewer distinct actions may well be those of two shoppers


class SessionFacts(Record):
    """The facts of a session that the audit needs.

    Attributes:
        problem: Why the session cannot be read, or that it has changed since it was written; the other facts are then
            empty.
        matches: By action type and page offset, the number of targets on that page and the number of targets with such
            a page. Targets are the logged names, except at a first or last step whose page was not logged (as in logs
            with pages shifted by one step).
        content: Digest of goal, pages, actions and rationales, without ids and times.
        may_coincide: Whether two shoppers may well do the same by chance: few distinct actions, and no text of the
            shopper.
        action_keys: Digests of the distinct actions.
        logged: Numbers of the logged (not inferred) actions, without the first step.
        stops: Numbers of those of them that are a terminate.
        rationale_sources: The names of the models that wrote rationales of the session.
        typed_texts: Its typed texts (typed_texts.py).
        doubts: Doubts about the session, worded to complete "N sessions with ...".
        searched_pages: Number of pages that were searched for private data. The search is slow, so it covers all pages
            of some sessions.
        private: Number of private texts by kind; never the texts.
    """

    session_id: str
    split: Split
    source: str = ""
    goal: str | None = None
    problem: str | None = None
    page_characters: tuple[int, ...] = ()
    action_counts: dict[str, int] = {}
    matches: dict[tuple[str, int], tuple[int, int]] = {}
    content: bytes = b""
    may_coincide: bool = False
    action_keys: frozenset[bytes] = frozenset()
    logged: tuple[int, ...] = ()
    stops: tuple[int, ...] = ()
    rationale_sources: frozenset[str] = frozenset()
    typed_texts: frozenset[str] = frozenset()
    doubts: tuple[str, ...] = ()
    searched_pages: int = 0
    private: dict[str, int] = {}


def scan_store(store: SessionStore, *, private_pages: int) -> Iterator[SessionFacts]:
    """Yields the facts of every session, in storage order.

    Args:
        private_pages: Approximate number of pages that are searched for private data, spread evenly over the store.
    """
    rows = store.index()
    interval = max(1, sum(row.steps for row in rows) // max(1, private_pages))
    for number, row in enumerate(track(rows, "checking")):
        try:
            session = store.session(row.session_id)
        except BadSession as error:
            yield SessionFacts(session_id=row.session_id, split=row.split, problem=str(error))
        else:
            yield _facts(session, row.split, search=private_pages > 0 and number % interval == 0)


def _facts(session: Session, split: Split, *, search: bool) -> SessionFacts:
    logged = [number for number, step in enumerate(session.steps) if number and not step.is_inferred]
    return SessionFacts(
        session_id=session.session_id,
        split=split,
        source=session.source,
        goal=session.goal,
        page_characters=tuple(len(step.page) for step in session.steps),
        action_counts=Counter(action_type(step.action) for step in session.steps),
        matches=count_matches(session),
        content=_digest((session.goal, [(step.page, step.action, step.rationale) for step in session.steps])),
        may_coincide=_may_coincide(session),
        action_keys=frozenset(_digest(step.action) for step in session.steps),
        logged=tuple(logged),
        stops=tuple(number for number in logged if isinstance(session.steps[number].action, Terminate)),
        rationale_sources=session.rationale_sources,
        typed_texts=normal_texts(session),
        doubts=tuple(_doubts(session)),
        searched_pages=len(session.steps) if search else 0,
        private=_private(session) if search else {},
    )


def _may_coincide(session: Session) -> bool:
    has_words = session.goal or any(step.rationale or isinstance(step.action, TypeAndSubmit) for step in session.steps)
    return len({step.action for step in session.steps}) < _COINCIDENCE_ACTIONS and not has_words


def count_matches(session: Session) -> dict[tuple[str, int], tuple[int, int]]:
    """Counts targets by action type and page offset.

    Returns:
        For each key, the number of targets on the page at that offset and the number of targets with such a page.
    """
    return add_counts(_matches(session))


def add_counts(counts: Iterable[tuple[Key, tuple[int, int]]]) -> dict[Key, tuple[int, int]]:
    """Sums pairs of counts by key."""
    hits, totals = Counter[Key](), Counter[Key]()
    for key, (hit, total) in counts:
        hits[key] += hit
        totals[key] += total
    return {key: (hits[key], totals[key]) for key in totals}


def _matches(session: Session) -> Iterator[tuple[tuple[str, int], tuple[int, int]]]:
    names = [page_names(step.page) for step in session.steps]
    last = len(names) - 1
    for index, step in enumerate(session.steps):
        if not (name := getattr(step.action, "name", "")):
            continue
        if index in (0, last) and not step.page.strip():
            continue  # a page that was not logged
        for offset in OFFSETS:
            if 0 <= index + offset <= last:
                yield (action_type(step.action), offset), (name in names[index + offset], 1)


def _private(session: Session) -> Counter[str]:
    """Counts private data by kind.

    The search covers pages and their attributes, goal, persona, rationales, typed texts and URLs. A user's id counts
    if it is an e-mail address.
    """
    texts = [session.goal, session.persona and session.persona.text]
    kinds = Counter(kind for kind in kinds_in_text(session.user_id) if kind == "email")
    for step in session.steps:
        texts += [step.rationale, step.action.text if isinstance(step.action, TypeAndSubmit) else None]
        kinds.update(kinds_in_page(step.page))
        kinds.update(kinds_in_url(step.url or ""))
    kinds.update(kind for text in texts if text for kind in kinds_in_text(text))
    return kinds


def _digest(content: object) -> bytes:
    return blake2b(msgspec.json.encode(content), digest_size=16).digest()


def _doubts(session: Session) -> Iterator[str]:
    if any(isinstance(step.action, Terminate) for step in session.steps[:-1]):
        yield "steps after a terminate"
    if any(not step.page.strip() for step in session.steps):
        yield "an empty page"
    if any(getattr(step.action, "name", None) == "" for step in session.steps):
        yield "an action without a name"
    times = [time for step in session.steps if (time := seconds(step.timestamp)) is not None]
    if any(later < earlier for earlier, later in pairwise(times)):
        yield "times that decrease: is the log's order that of the visit?"
