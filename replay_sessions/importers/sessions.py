"""Rows of one session -> the session: the one way of every importer, whatever its source.

A row says what was done on which page (`COLUMNS` in raw/action_table.py lists the keys; a missing key counts as None).
An importer brings the rows of a session in the order of time, and `Pages`: how it looks up the page of a row. A row
whose `type` is no action counts under that word; where the log's word could be mistaken for one, `type` is None and the
word is the row's `event`.

    action            becomes a step, with the name that the element has on the simplified page
    no such element   or no page: the action is left out and counted, and rejected with the reason
    other events      are left out and counted

The `gap` of the next step counts what was left out. A purchase ends the session: what follows is left out.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, Protocol, get_args

import msgspec

from replay_sessions.foundation.errors import BadSession
from replay_sessions.importers.importer import Imported, LeftOut, too_long
from replay_sessions.importers.private_sessions import without_private_data, without_private_words
from replay_sessions.importers.raw_page import RawPage, Target, Unresolved
from replay_sessions.private_data import Removal, remove_from_text
from replay_sessions.schema import Action, Click, Persona, Session, Split, Step, Terminate, TypeAndSubmit
from replay_sessions.simplify import SimplifiedPage, load_recipe
from replay_sessions.simplify.recipes import Rule
from replay_sessions.store.manifest import Rejected

Row = dict[str, Any]

PURCHASE = "purchase"  # OPeRA's word, too
ACTION_TYPES = ("click", "type_and_submit", "input", "terminate", PURCHASE)
VIEW = "view"  # the page is on the screen from then on, and nothing was done
CACHED_PAGES = 4  # consecutive actions are often on one page


class PageReading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a log's pages are, and what is to be done to them.

    Attributes:
        pages: Raw pages are simplified, and what was acted on is looked up in them.
        recipe: How raw pages are simplified, a NAME or a FILE; None: it is found by the site.
        private_data: Whether it is taken out; None: out of raw pages it is, simplified ones stay as they are.
    """

    pages: Literal["simplified", "raw"] = "simplified"
    recipe: str | None = None
    private_data: Literal["remove", "keep"] | None = None

    @property
    def removes_private_data(self) -> bool:
        return self.private_data == "remove" or (self.private_data is None and self.pages == "raw")

    def described(self) -> dict[str, str]:
        """How it differs from pages that are stored as they were logged, for the manifest."""
        if (self.pages, self.recipe, self.private_data) == ("simplified", None, None):
            return {}
        recipe = {"pages": "raw", "recipe": self.recipe or "by site"} if self.pages == "raw" else {}
        return {**recipe, "private_data": "removed" if self.removes_private_data else "kept"}

    def recipe_rules(self) -> tuple[Rule, ...] | None:
        """The content of the recipe that is named.

        Raises:
            BadConfig: There is none of that name.
        """
        return load_recipe(self.recipe).rules if self.recipe is not None else None


class PageOfRow(Protocol):
    """A simplified page on which what was acted on can be found, as `RawPage` does."""

    @property
    def page(self) -> SimplifiedPage: ...

    def find(self, target: Target, *, typed: bool) -> str: ...


class Pages(ABC):
    """How the page of a row is looked up."""

    removes_private_data: bool

    @abstractmethod
    def page(self, row: Row) -> PageOfRow:
        """The page of a row.

        Raises:
            Unresolved: There is none, or it cannot be read.
        """

    def is_purchase(self, row: Row, page: Any, name: str) -> bool:
        """Whether a click on the element of a name is the purchase, which ends the session."""
        return bool(row["type"] == PURCHASE)

    def clean(self, session: Session, removed: tuple[Removal, ...]) -> Session:
        """The session without private data, once its pages have none."""
        return without_private_words(session, removed)


class _LoggedPage(msgspec.Struct, frozen=True):
    """A page that the log holds simplified; what was acted on is logged by its name there."""

    page: SimplifiedPage

    def find(self, target: Target, *, typed: bool) -> str:
        return target.get("name") or ""


class InlinePages(Pages):
    """Pages that stand in the rows, simplified or raw."""

    def __init__(self, reading: PageReading) -> None:
        self._reading = reading
        self.removes_private_data = reading.removes_private_data

    def page(self, row: Row) -> PageOfRow:
        html = row["page"] or ""
        if self._reading.pages == "simplified" or not html.strip():
            return _LoggedPage(SimplifiedPage(html))
        try:
            return _raw_page(html, self._reading.recipe, self.removes_private_data)
        except BadSession as error:
            raise Unresolved(str(error)) from error

    def clean(self, session: Session, removed: tuple[Removal, ...]) -> Session:
        is_raw = self._reading.pages == "raw"
        return without_private_words(session, removed) if is_raw else without_private_data(session)


@lru_cache(CACHED_PAGES)
def _raw_page(html: str, recipe: str | None, private_data: bool) -> RawPage:
    return RawPage(html.encode("utf-8", "replace"), load_recipe(recipe) if recipe else None, private_data=private_data)


def number_actions(rows: list[Row]) -> list[Row]:
    """The rows of a session, its actions numbered: what else a log has is not counted where the user reads of one."""
    for number, row in enumerate((row for row in rows if row["type"] in ACTION_TYPES), start=1):
        row["row"] = number
    return rows


def rows_of_session(session: Session) -> list[Row]:
    """The rows that a session would be built from; what it calls the names of elements may be their texts."""
    about = {name: getattr(session, name) for name in ("session_id", "user_id", "goal")}
    rows = []
    for step in session.steps:
        fields = {name: getattr(step, name) for name in Step.__struct_fields__}
        action = msgspec.to_builtins(fields.pop("action"))
        if not action.get("submitted", True):
            action["type"] = "input"
        rows.append({**about, "split": session.official_split, **fields, **action, "element_text": action.get("name")})
    return number_actions(rows)


def build_session(
    rows: list[Row],
    pages: Pages,
    *,
    source: str,
    longest_bytes: int,
    row_prefix: str,
    session_location: str | None = None,
    persona: Persona | None = None,
) -> Iterator[Imported]:
    """The session of rows in the order of time, what was left out, and what was rejected.

    Args:
        longest_bytes: A session whose pages are longer is rejected.
        row_prefix: What stands before the number of a row where the user reads of it.
        session_location: How the user reads of the session; None: by its id.
        persona: Who the shopper is; None: the rows say so, as text.
    """
    location = rows[0]["session_id"] if session_location is None else session_location
    steps: list[Step] = []
    others: list[LeftOut | Rejected] = []
    removed: dict[Removal, None] = {}
    characters = 0
    for item in _read_rows(rows, pages, row_prefix, removed):
        if not isinstance(item, Step):
            others.append(item)
            yield item
            continue
        steps.append(item)
        characters += len(item.page)
        if characters > longest_bytes:
            yield Rejected(where=location, reason=too_long(longest_bytes))
            return
    if not steps:
        types = ", ".join(sorted({item.action_type for item in others if isinstance(item, LeftOut)}))
        is_lost = not types or any(isinstance(item, Rejected) for item in others)
        reason = (
            "none of its actions could be taken in" if is_lost else f"none of its steps is an action (only {types})"
        )
        yield Rejected(where=location, reason=reason)
        return
    try:
        session = _session(rows, steps, source, persona)
    except ValueError as error:  # BadSession among them
        yield Rejected(where=location, reason=str(error))
        return
    yield pages.clean(session, tuple(removed)) if pages.removes_private_data else session


def _session(rows: list[Row], steps: list[Step], source: str, persona: Persona | None) -> Session:
    session_id = rows[0]["session_id"]
    split, text = _first(rows, "split"), _first(rows, "persona")
    if split is not None and split not in get_args(Split):
        raise BadSession(f"official split is {split!r}, and train, validation or test was expected")
    return Session(
        session_id=session_id,
        user_id=_first(rows, "user_id") or session_id,
        persona=Persona(text=text) if text else persona,
        goal=_first(rows, "goal"),
        official_split=split,
        steps=tuple(steps),
        source=source,
    )


def _read_rows(
    rows: list[Row], pages: Pages, row_prefix: str, removed: dict[Removal, None]
) -> Iterator[Step | LeftOut | Rejected]:
    """The steps of rows, and what else is in them; what pages had that is private is added to `removed`."""
    gap = 0
    is_over = False
    for row in rows:
        kind = row["type"]
        event = kind or row.get("event") or "without a type"
        gap += row.get("gap") or 0
        if kind == VIEW:
            continue
        if is_over or kind not in ACTION_TYPES:
            yield LeftOut(action_type=f"{event} after the purchase" if is_over else event)
            gap += 1
            continue
        try:
            page = pages.page(row)
            removed |= dict.fromkeys(page.page.removed)
            action = _action(row, page)
        except Unresolved as error:
            yield LeftOut(action_type=f"{event} {error.outcome}")
            reason = remove_from_text(str(error), tuple(removed)) if pages.removes_private_data else str(error)
            yield Rejected(where=f"{row_prefix}{row['row']}", reason=reason)
            gap += 1
            continue
        if isinstance(action, Click) and pages.is_purchase(row, page, action.name):
            is_over = True
            action = msgspec.structs.replace(action, click_type=PURCHASE)
        yield Step(
            page=page.page.html,
            action=action,
            rationale=row.get("rationale") or None,
            rationale_source=row.get("rationale_source"),
            url=row.get("url"),
            timestamp=row.get("timestamp"),
            gap=gap,
        )
        gap = 0


def _action(row: Row, page: PageOfRow) -> Action:
    if row["type"] == "terminate":
        return Terminate()
    if row["type"] in ("click", PURCHASE):
        return Click(name=page.find(row, typed=False), click_type=row.get("click_type"))
    return TypeAndSubmit(name=page.find(row, typed=True), text=row.get("text") or "", submitted=row["type"] != "input")


def _first(rows: list[Row], column: str) -> Any:
    return next((value for row in rows if (value := row.get(column))), None)
