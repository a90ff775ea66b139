"""Rows of a raw log -> a session: each page is read and simplified, and what was acted on is looked up in it."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Protocol, TypeVar, get_args

import msgspec

from replay_sessions.errors import BadSession
from replay_sessions.importers.importer import Imported, LeftOut
from replay_sessions.importers.page_reading import NOT_FOUND
from replay_sessions.importers.raw.endings import (
    ACTION_TYPES,
    NO_ENDINGS,
    PURCHASE,
    VIEW,
    Endings,
    ended_sessions,
)
from replay_sessions.importers.raw.rows import NO_PAGE, NO_PAGE_WHY, Row
from replay_sessions.importers.raw.targets import RawPage, Unresolved
from replay_sessions.importers.sources.session_rows import too_long
from replay_sessions.importers.sources.timestamps import in_time_order
from replay_sessions.schema import Action, Click, Persona, Session, Split, Step, Terminate, TypeAndSubmit
from replay_sessions.simplify import Recipe, SimplifiedPage
from replay_sessions.simplify.bounds import MAX_BYTES
from replay_sessions.simplify.private_data import Removal, remove_from_text
from replay_sessions.simplify.private_data.sessions import without_private_words
from replay_sessions.store.manifest import SetAside

__all__ = ["FoundPage", "PageFolder", "Pages", "read_rows", "read_session"]

WITHOUT_PAGE = "{} without a page: {}"  # how an action is counted whose page was not captured
AFTER_PURCHASE = "{} after the purchase"  # how what follows a session's end is counted
_KEPT_PAGES = 4  # consecutive actions are often on one page


class FoundPage(Protocol):
    """A simplified page on which what was acted on can be found, as `RawPage` does."""

    @property
    def page(self) -> SimplifiedPage: ...

    def find(self, target: Row, *, typed: bool) -> str: ...


PageT = TypeVar("PageT", bound=FoundPage, covariant=True)


class Pages(Protocol[PageT]):
    """The pages of a log by the names that its rows give them, as `PageFolder` holds them."""

    @property
    def private_data(self) -> bool: ...

    def page(self, file: str) -> PageT: ...

    def told(self, reason: str) -> str: ...


class PageFolder:
    """The pages of a raw log, the last few of them kept simplified."""

    def __init__(self, folder: Path, recipe: Recipe | None, *, private_data: bool = True) -> None:
        self.private_data = private_data
        self._folder = folder.resolve()
        self._recipe = recipe
        self.page = lru_cache(_KEPT_PAGES)(self._page)

    def _page(self, file: str) -> RawPage:
        """A page of the folder.

        Raises:
            Unresolved: There is none, or it cannot be read.
        """
        content = self.content(file)
        try:
            return RawPage(content, self._recipe, private_data=self.private_data)
        except BadSession as error:
            raise Unresolved(f"page '{file}': {error}") from error

    def content(self, file: str) -> bytes:
        """The bytes of a page.

        Raises:
            Unresolved: There is none, or it cannot be read.
        """
        try:
            return _content(self._path(file))
        # A name that holds a null byte is a ValueError, links that lead in a circle are a RuntimeError.
        except (OSError, EOFError, zlib.error, ValueError, RuntimeError) as error:
            raise Unresolved(f"page '{file}' cannot be read: {getattr(error, 'strerror', None) or error}") from error

    def told(self, reason: str) -> str:
        """A reason as it may be kept: the name of a page may be somebody's, too."""
        return remove_from_text(reason) if self.private_data else reason

    def _path(self, file: str) -> Path:
        path = (self._folder / file).resolve()
        if not path.is_relative_to(self._folder):
            raise Unresolved(f"page '{file}' lies outside the folder")
        return path


def read_session(
    rows: list[Row],
    pages: PageFolder,
    source: str,
    table: str,
    endings: Endings = NO_ENDINGS,
    *,
    longest_bytes: int,
) -> Iterator[Imported]:
    """The session of a recording (or several, where pauses end one), what was left out, and why.

    One whose pages are more than `longest_bytes` is set aside.
    """
    has_bought = partial(_has_bought, endings)
    for recording in ended_sessions(in_time_order(rows, lambda row: row.get("timestamp")), endings):
        yield from read_rows(recording, pages, source, table, has_bought=has_bought, longest_bytes=longest_bytes)


def read_rows(
    rows: list[Row],
    pages: Pages[PageT],
    source: str,
    table: str,
    *,
    has_bought: Callable[[Row, Action, PageT], bool],
    longest_bytes: int,
) -> Iterator[Imported]:
    """The session of rows in the order of time, what was left out, and why.

    Args:
        has_bought: Whether an action is the purchase, which ends the session.
    """
    steps: list[Step] = []
    removed: dict[Removal, None] = {}
    characters = 0
    gap = 0
    is_over = False
    for row in rows:
        action_type = row["type"] or "without a type"
        if action_type == VIEW:
            continue  # nothing was done
        if is_over:
            yield LeftOut(action_type=AFTER_PURCHASE.format(action_type))
            continue
        try:
            if action_type not in ACTION_TYPES:
                yield LeftOut(action_type=action_type)
                gap += 1
                continue
            if cause := row.get(NO_PAGE):
                yield LeftOut(action_type=WITHOUT_PAGE.format(action_type, cause))
                yield SetAside(where=f"{table}:{row['row']}", reason=pages.told(row.get(NO_PAGE_WHY) or cause))
                gap += 1
                continue
            raw = pages.page(row["page"] or "")
            steps.append(_step(row, raw, gap))
            is_over = has_bought(row, steps[-1].action, raw)
        except Unresolved as error:
            yield LeftOut(action_type=NOT_FOUND.format(action_type))
            yield SetAside(where=f"{table}:{row['row']}", reason=pages.told(str(error)))
            gap += 1
        else:
            removed |= dict.fromkeys(raw.page.removed)
            gap = 0
            characters += len(steps[-1].page)
            if characters > longest_bytes:
                yield SetAside(where=rows[0]["session_id"] or "", reason=too_long(longest_bytes))
                return
    if is_over and isinstance(bought := steps[-1].action, Click):
        steps[-1] = msgspec.structs.replace(steps[-1], action=msgspec.structs.replace(bought, click_type=PURCHASE))
    session = _session(rows, steps, source)
    if isinstance(session, Session) and pages.private_data:
        session = without_private_words(session, tuple(removed))
    yield session


def _step(row: Row, raw: FoundPage, gap: int) -> Step:
    return Step(
        page=raw.page.html,
        action=_action(row, raw),
        rationale=row.get("rationale") or None,
        url=row.get("url"),
        timestamp=row.get("timestamp"),
        gap=gap,
    )


def _action(row: Row, raw: FoundPage) -> Action:
    if row["type"] == "terminate":
        return Terminate()
    if row["type"] in ("click", PURCHASE):
        return Click(name=raw.find(row, typed=False), click_type=row.get("click_type"))
    return TypeAndSubmit(name=raw.find(row, typed=True), text=row.get("text") or "", submitted=row["type"] != "input")


def _has_bought(endings: Endings, row: Row, action: Action, raw: RawPage) -> bool:
    if not isinstance(action, Click):
        return False
    if row["type"] == PURCHASE:
        return True
    return endings.purchase_selector is not None and raw.among(endings.purchase_selector, action.name)


def _session(rows: list[Row], steps: list[Step], source: str) -> Session | SetAside:
    session_id = rows[0]["session_id"] or ""
    split = _first(rows, "split")
    if not steps:
        return SetAside(where=session_id, reason="none of its actions could be taken in")
    if split is not None and split not in get_args(Split):
        reason = f"split is {split!r}, and train, validation or test was expected"
        return SetAside(where=session_id, reason=reason)
    persona = _first(rows, "persona")
    return Session(
        session_id=session_id,
        user_id=_first(rows, "user_id") or session_id,
        persona=Persona(text=persona) if persona else None,
        goal=_first(rows, "goal"),
        official_split=split,  # type: ignore[arg-type]  # checked above
        steps=tuple(steps),
        source=source,
    )


def _first(rows: list[Row], column: str) -> str | None:
    return next((value for row in rows if (value := row.get(column))), None)


def _content(path: Path) -> bytes:
    """A page's bytes, unpacked; a bomb is read no further than any page may be long."""
    if path.suffix != ".gz":
        return path.read_bytes()
    with gzip.open(path) as packed:
        return packed.read(MAX_BYTES + 1)
