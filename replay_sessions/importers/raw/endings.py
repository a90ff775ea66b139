"""Where the sessions of a raw log end: with a purchase, after a long pause, or where the recording ends.

Shops' logs seldom say that somebody left. Nothing is made of that unless the import is told to:

    purchase_selector   a click on what it matches buys: it is the session's last step, its click_type "purchase"
    purchase_url        so does the last click before the first page whose address holds this
    idle_minutes        a longer pause ends a session: a terminate on the page that was shown when it began, which is
                        that of the row after it, and that row begins another session: "v1", then "v1 (2)"
    terminate_at_end    a recording that ends otherwise ends in a terminate, if the page after the last action is
                        known: that of a later row, of a type that is no action (a page view, say)

A row of type `purchase` is a click that bought, and the last. One of type `view` is no action, and tells that its page
is shown from then on: where it comes after a pause, its page is not the one that was shown when the pause began.

A terminate is never put on a page that nobody saw: an agent would learn that an empty page means to leave.
"""

from collections.abc import Iterator

import msgspec
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from replay_sessions.errors import BadConfig
from replay_sessions.importers.raw.rows import NO_PAGE, Row
from replay_sessions.importers.sources.timestamps import seconds

__all__ = ["ACTION_TYPES", "NO_ENDINGS", "PURCHASE", "VIEW", "Endings", "ended_sessions", "endings_of"]

PURCHASE = "purchase"  # OPeRA's word, too
ACTION_TYPES = ("click", "type_and_submit", "input", "terminate", PURCHASE)
VIEW = "view"


class Endings(msgspec.Struct, frozen=True, kw_only=True):
    """What ends a session; see the module. None and False: nothing does.

    Attributes:
        purchase_selector: A click on what this CSS selector matches buys, and is the session's last.
        purchase_url: The click before a page whose address holds this text buys, and is the last.
        idle_minutes: A longer pause ends a session in a terminate and begins another.
        terminate_at_end: A terminate where a recording ends, if a row after the last action tells the page.
    """

    purchase_selector: str | None = None
    purchase_url: str | None = None
    idle_minutes: float | None = None
    terminate_at_end: bool = False

    def check(self) -> None:
        """Raises BadConfig where one of them means nothing."""
        if self.purchase_selector is not None:
            try:
                LexborHTMLParser("<p>").css(self.purchase_selector)
            except (SelectolaxError, ValueError) as error:
                raise BadConfig(
                    f"{self.purchase_selector!r} is no CSS selector: give one such as '#buy-now'"
                ) from error
        if self.idle_minutes is not None and not self.idle_minutes > 0:
            raise BadConfig(f"an idle time of {self.idle_minutes:g} minutes was given, and more than 0 was expected")

    def told(self) -> dict[str, str]:
        """What of it was asked for, for the manifest."""
        return {name: str(value) for name, value in msgspec.structs.asdict(self).items() if value not in (None, False)}


NO_ENDINGS = Endings()


def endings_of(options: Endings) -> Endings:
    """What an importer's options, which hold those of Endings, say of how sessions end."""
    return Endings(**{name: getattr(options, name) for name in Endings.__struct_fields__})


def ended_sessions(rows: list[Row], endings: Endings) -> Iterator[list[Row]]:
    """The sessions that the rows of one recording, in the order of time, are.

    A purchase by address keeps the rows behind it, which are left out later: they are counted there.
    """
    recordings = list(_without_pauses(rows, endings.idle_minutes))
    for number, recording in enumerate(recordings, start=1):
        session = _bought(recording, endings.purchase_url)
        if any(row["type"] == PURCHASE for row in session):
            pass  # who bought did not leave, even if the element that was clicked is not found
        elif number < len(recordings):
            shown = session[-1] if session[-1]["type"] == VIEW else recordings[number][0]
            if (shown is session[-1] or shown["type"] != VIEW) and not shown.get(NO_PAGE):
                session = [*session, _terminate(shown)]
        elif endings.terminate_at_end and session[-1]["type"] not in ACTION_TYPES and session[-1].get("page"):
            session = [*session, _terminate(session[-1])]
        if number > 1:
            session = [
                {**row, "session_id": f"{row['session_id']} ({number})", "user_id": _user(row)} for row in session
            ]
        yield session


def _without_pauses(rows: list[Row], minutes: float | None) -> Iterator[list[Row]]:
    start = 0
    for place in range(1, len(rows)):
        before, after = (seconds(row.get("timestamp")) for row in rows[place - 1 : place + 1])
        pauses = minutes is not None and before is not None and after is not None and after - before > 60 * minutes
        if pauses and rows[place - 1]["type"] != "terminate":
            yield rows[start:place]
            start = place
    yield rows[start:]


def _bought(rows: list[Row], purchase_url: str | None) -> list[Row]:
    """The rows with the last action before a page of purchase marked as one."""
    if not purchase_url:
        return rows
    for place, row in enumerate(rows):
        if purchase_url in (row.get("url") or ""):
            for last in range(place - 1, -1, -1):
                if rows[last]["type"] == "click":
                    return [*rows[:last], {**rows[last], "type": PURCHASE}, *rows[last + 1 :]]
            return rows
    return rows


def _terminate(row: Row) -> Row:
    """A terminate on the page of a row."""
    return {name: row.get(name) for name in ("session_id", "user_id", "page", "url", "timestamp", "row")} | {
        "type": "terminate"
    }


def _user(row: Row) -> str | None:
    return row.get("user_id") or row["session_id"]
