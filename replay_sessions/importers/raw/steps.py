"""Rows of a raw log -> a session: each page is read and simplified, and what was acted on is looked up in it."""

import gzip
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import get_args

from replay_sessions.errors import BadSession
from replay_sessions.importers.importer import Imported, LeftOut
from replay_sessions.importers.raw.rows import Row
from replay_sessions.importers.raw.targets import RawPage, Unresolved
from replay_sessions.importers.sources.session_rows import too_long
from replay_sessions.importers.sources.timestamps import in_time_order
from replay_sessions.schema import Action, Click, Persona, Session, Split, Step, Terminate, TypeAndSubmit
from replay_sessions.simplify import Recipe
from replay_sessions.simplify.bounds import MAX_BYTES
from replay_sessions.simplify.private_data import remove_private_data, remove_repeated
from replay_sessions.store.manifest import SetAside

__all__ = ["NOT_FOUND", "PageFolder", "read_session"]

NOT_FOUND = "{} not found on its page"  # how an action is counted whose page or element is not found
_KEPT_PAGES = 4  # consecutive actions are often on one page
_TYPES = ("click", "type_and_submit", "input", "terminate")


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
        try:
            content = _read(self._path(file))
        # A name that holds a null byte is a ValueError, links that lead in a circle are a RuntimeError.
        except (OSError, EOFError, zlib.error, ValueError, RuntimeError) as error:
            raise Unresolved(f"page '{file}' cannot be read: {getattr(error, 'strerror', None) or error}") from error
        try:
            return RawPage(content, self._recipe, private_data=self.private_data)
        except BadSession as error:
            raise Unresolved(f"page '{file}': {error}") from error

    def _path(self, file: str) -> Path:
        path = (self._folder / file).resolve()
        if not path.is_relative_to(self._folder):
            raise Unresolved(f"page '{file}' lies outside the folder")
        return path


def read_session(rows: list[Row], pages: PageFolder, source: str, table: str, longest_bytes: int) -> Iterator[Imported]:
    """A session, what was left out of it, and why; one whose pages are more than `longest_bytes` is set aside."""
    steps: list[Step] = []
    characters = 0
    gap = 0
    ordered = in_time_order(rows, lambda row: row.get("timestamp"))
    for row in ordered:
        action_type = row["type"] or "without a type"
        try:
            if action_type not in _TYPES:
                yield LeftOut(action_type=action_type)
                gap += 1
                continue
            steps.append(_step(row, pages, gap))
        except Unresolved as error:
            yield LeftOut(action_type=NOT_FOUND.format(action_type))
            yield SetAside(where=f"{table}:{row['row']}", reason=str(error))
            gap += 1
        else:
            gap = 0
            characters += len(steps[-1].page)
            if characters > longest_bytes:
                yield SetAside(where=rows[0]["session_id"] or "", reason=too_long(longest_bytes))
                return
    yield _session(ordered, steps, source)


def _step(row: Row, pages: PageFolder, gap: int) -> Step:
    raw = pages.page(row["page"] or "")
    return Step(
        page=raw.page.html,
        action=_action(row, raw, pages),
        rationale=_cleaned(row.get("rationale"), raw, pages) or None,
        url=_cleaned(row.get("url"), raw, pages),
        timestamp=row.get("timestamp"),
        gap=gap,
    )


def _action(row: Row, raw: RawPage, pages: PageFolder) -> Action:
    if row["type"] == "terminate":
        return Terminate()
    if row["type"] == "click":
        return Click(name=raw.find(row, typed=False), click_type=row.get("click_type"))
    text = _cleaned(row.get("text"), raw, pages) or ""
    return TypeAndSubmit(name=raw.find(row, typed=True), text=text, submitted=row["type"] != "input")


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


def _cleaned(text: str | None, raw: RawPage, pages: PageFolder) -> str | None:
    """Text without what looks private, and without what its page showed to be."""
    if not text or not pages.private_data:
        return text
    text = remove_private_data([text])[0].get(0, text)
    return remove_repeated([text], raw.page.removed).get(0, text)


def _read(path: Path) -> bytes:
    """A page's bytes, unpacked; a bomb is read no further than any page may be long."""
    if path.suffix != ".gz":
        return path.read_bytes()
    with gzip.open(path) as packed:
        return packed.read(MAX_BYTES + 1)
