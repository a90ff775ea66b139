"""The audit's one pass over a store: each session -> the few facts that the audit counts (see judge.py)."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from hashlib import blake2b
from multiprocessing import get_context
from pathlib import Path

import msgspec

from replay_sessions.elements import page_names
from replay_sessions.errors import BadSession
from replay_sessions.schema import Action, Session, Split, Terminate, TypeAndSubmit
from replay_sessions.simplify.private_data import find_in_text, find_in_url, find_private_data
from replay_sessions.store import SessionStore

__all__ = ["OFFSETS", "SessionFacts", "found_at_offsets", "scan_store"]

OFFSETS = (-1, 0, 1)
_CHUNK_SESSIONS = 64
# Below this, starting processes takes longer than reading.
_WORTH_PROCESSES_CHARACTERS = 100_000_000


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the audit keeps of a session.

    Attributes:
        problem: Why it cannot be read, or that it is not what was written; the other facts are empty then.
        targets: Logged names by action type; not those of steps whose page was not logged at all, which is so of the
            first or last step where a log's pages are shifted by one.
        on_page: How many of them stand on the page shown.
        on_page_at: By page offset, how many targets stand on that page, and how many had one.
        content: Digest of goal, pages, actions and rationales, without ids and times.
        action_keys: Digests of the distinct actions.
        doubts: What looks wrong, completing "N sessions with ...".
        searched_pages: Pages that were searched for private data, a slow search: all of some sessions.
        private: What was found there, by kind; never what it was.
    """

    session_id: str
    split: Split
    source: str = ""
    goal: str | None = None
    problem: str | None = None
    steps: int = 0
    page_characters: tuple[int, ...] = ()
    action_counts: dict[str, int] = {}
    targets: dict[str, int] = {}
    on_page: dict[str, int] = {}
    on_page_at: dict[int, tuple[int, int]] = {}
    content: bytes = b""
    action_keys: frozenset[bytes] = frozenset()
    doubts: tuple[str, ...] = ()
    searched_pages: int = 0
    private: dict[str, int] = {}


def scan_store(
    store: SessionStore,
    *,
    private_pages: int = 0,
    workers: int = 1,
    on_progress: Callable[[int], None] | None = None,
) -> Iterator[SessionFacts]:
    """The facts of every session, in storage order; with several workers a large store is read by processes.

    Args:
        private_pages: About how many pages are searched for private data, spread evenly over the store.
    """
    rows = store.index()
    every = max(1, sum(row.steps for row in rows) // max(1, private_pages))
    tasks = [(row.session_id, private_pages > 0 and number % every == 0) for number, row in enumerate(rows)]
    chunks = [tasks[start : start + _CHUNK_SESSIONS] for start in range(0, len(tasks), _CHUNK_SESSIONS)]
    if workers <= 1 or sum(row.page_characters for row in rows) < _WORTH_PROCESSES_CHARACTERS:
        for chunk in chunks:
            yield from _scan(store, chunk)
            if on_progress:
                on_progress(len(chunk))
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for facts in pool.map(partial(_scan_elsewhere, store.path, store.fingerprint), chunks):
            yield from facts
            if on_progress:
                on_progress(len(facts))


def _scan_elsewhere(path: Path, fingerprint: str, tasks: list[tuple[str, bool]]) -> list[SessionFacts]:
    return _scan(SessionStore.reopen(path, fingerprint), tasks)


def _scan(store: SessionStore, tasks: list[tuple[str, bool]]) -> list[SessionFacts]:
    facts = []
    for session_id, search in tasks:
        split = store.split_of(session_id)
        try:
            session = store.verified_session(session_id)
        except BadSession as error:
            facts.append(SessionFacts(session_id=session_id, split=split, problem=str(error)))
        else:
            facts.append(_facts(session, split, search=search))
    return facts


def _facts(session: Session, split: Split, *, search: bool) -> SessionFacts:
    names = _names(session)
    targets: Counter[str] = Counter()
    on_page: Counter[str] = Counter()
    for index, name in _targets(session):
        action_type = _type(session.steps[index].action)
        targets[action_type] += 1
        on_page[action_type] += name in names[index]
    return SessionFacts(
        session_id=session.session_id,
        split=split,
        source=session.source,
        goal=session.goal,
        steps=len(session.steps),
        page_characters=tuple(len(step.page) for step in session.steps),
        action_counts=Counter(_type(step.action) for step in session.steps),
        targets=targets,
        on_page=on_page,
        on_page_at=_found_at_offsets(session, names),
        content=_content(session),
        action_keys=frozenset(_digest(msgspec.json.encode(step.action)) for step in session.steps),
        doubts=tuple(_doubts(session)),
        searched_pages=len(session.steps) if search else 0,
        private=_private(session) if search else {},
    )


def found_at_offsets(session: Session) -> dict[int, tuple[int, int]]:
    """By page offset, how many targets stand on the page that many steps away, and how many steps have one there."""
    return _found_at_offsets(session, _names(session))


def _found_at_offsets(session: Session, names: list[set[str]]) -> dict[int, tuple[int, int]]:
    found, asked = Counter[int](), Counter[int]()
    for index, name in _targets(session):
        for offset in OFFSETS:
            if 0 <= index + offset < len(names):
                asked[offset] += 1
                found[offset] += name in names[index + offset]
    return {offset: (found[offset], asked[offset]) for offset in OFFSETS}


def _names(session: Session) -> list[set[str]]:
    return [page_names(step.page) for step in session.steps]


def _targets(session: Session) -> Iterator[tuple[int, str]]:
    """The steps that act on something named, on a page that may be asked after it."""
    last = len(session.steps) - 1
    for index, step in enumerate(session.steps):
        if isinstance(step.action, Terminate) or not step.action.name:
            continue
        if index not in (0, last) or step.page.strip():
            yield index, step.action.name


def _private(session: Session) -> Counter[str]:
    """Private data by kind: on the pages and in their attributes, and in all that was typed, said or given."""
    spoken = [session.goal, session.persona.text if session.persona else None]
    urls: list[str] = []
    found: Counter[str] = Counter()
    for step in session.steps:
        found.update(removal.kind for removal in find_private_data(step.page))
        spoken += [step.rationale, step.action.text if isinstance(step.action, TypeAndSubmit) else None]
        urls += [step.url] if step.url else []
    found.update(kind for text in spoken if text for kind in find_in_text(text))
    found.update(kind for url in urls for kind in find_in_url(url))
    return found


def _type(action: Action) -> str:
    return str(action.__struct_config__.tag)


def _content(session: Session) -> bytes:
    steps = [(step.page, step.action, step.rationale) for step in session.steps]
    return _digest(msgspec.json.encode((session.goal, steps)))


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


def _doubts(session: Session) -> Iterator[str]:
    if any(isinstance(step.action, Terminate) for step in session.steps[:-1]):
        yield "steps after a terminate"
    if any(not step.page.strip() for step in session.steps):
        yield "an empty page"
    if any(not isinstance(step.action, Terminate) and not step.action.name for step in session.steps):
        yield "an action without a name"
