"""Where the sessions of a raw log end: with a purchase, after a long pause, or where the recording ends.

Shops' logs seldom say that somebody left. No terminate is added unless an option asks for it:

    purchase_selector   a click on what it matches buys: it is the session's last step, its click_type "purchase"
    purchase_url        so does the last click before a page whose address holds this
    idle_minutes        a longer pause ends a session: a terminate on the page that was on the screen when it began,
                        which is that of the row after it, and that row begins another session: "v1", then "v1 (2)"
    terminate_at_end    a recording that ends otherwise ends in a terminate, if the page after the last action is
                        known: that of a later row, of a type that is no action (a page view, say)

A row of type `purchase` is a click that bought, and the last. One of type `view` is no action: its page
is on the screen from then on: where it comes after a pause, its page is not the one that was there when the pause
began.

A terminate is never put on a page that nobody saw: an agent would learn that an empty page means to leave.
"""

from collections.abc import Iterator
from itertools import pairwise

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.times import seconds
from replay_sessions.importers.sessions import ACTION_ROWS, PURCHASE, VIEW, numbered_session
from replay_sessions.importers.sources.row_tables import Row


class Endings(Record):
    """The end of a session; see the module. None and False: there is none.

    Attributes:
        purchase_selector: A click on what this CSS selector matches buys, and is the session's last.
        purchase_url: The click before a page whose address holds this text buys, and is the last.
        idle_minutes: A longer pause ends a session in a terminate and begins another.
        terminate_at_end: A terminate where a recording ends, if a row after the last action has the page.
    """

    purchase_selector: str | None = None
    purchase_url: str | None = None
    idle_minutes: float | None = None
    terminate_at_end: bool = False

    def __post_init__(self) -> None:
        if self.purchase_selector is not None:
            try:
                LexborHTMLParser("<p>").css(self.purchase_selector)
            except (SelectolaxError, ValueError) as error:
                raise BadConfig(
                    f"{self.purchase_selector!r} is no CSS selector: give one such as '#buy-now'"
                ) from error
        check_at_least(1, idle_minutes=self.idle_minutes)


def ended_sessions(rows: list[Row], endings: Endings) -> Iterator[list[Row]]:
    """The sessions that the rows of one recording, in the order of time, are.

    A purchase by address keeps the rows behind it, which are left out later: they are counted there.
    """
    recordings = list(split_at_pauses(rows, endings.idle_minutes))
    for number, recording in enumerate(recordings, start=1):
        session = _mark_purchase(recording, endings.purchase_url)
        if any(row["type"] == PURCHASE for row in session):
            pass  # who bought did not leave, even if the element that was clicked is not found
        elif number < len(recordings):
            last, following = session[-1], recordings[number][0]
            page_row = last if last["type"] == VIEW else None if following["type"] == VIEW else following
            if page_row:
                session = [*session, _terminate(page_row)]
        elif endings.terminate_at_end and session[-1]["type"] not in ACTION_ROWS and session[-1].get("page"):
            session = [*session, _terminate(session[-1])]
        yield numbered_session(session, number)


def split_at_pauses(rows: list[Row], minutes: float | None) -> Iterator[list[Row]]:
    """The rows, in the order of time, between pauses of more than so many minutes; None: all of them."""
    start = 0
    times = [seconds(row.get("timestamp")) for row in rows]
    for index, (before, after) in enumerate(pairwise(times), start=1):
        is_pause = minutes is not None and before is not None and after is not None and after - before > 60 * minutes
        if is_pause and rows[index - 1].get("type") != "terminate":
            yield rows[start:index]
            start = index
    yield rows[start:]


def _mark_purchase(rows: list[Row], purchase_url: str | None) -> list[Row]:
    """The rows with the last click before a page of purchase marked as one.

    A page of purchase without a click before it was bought on earlier, and is shown again.
    """
    click = None
    for index, row in enumerate(rows):
        if purchase_url and purchase_url in (row.get("url") or ""):
            if click is not None:
                return [*rows[:click], {**rows[click], "type": PURCHASE}, *rows[click + 1 :]]
        elif row["type"] == "click":
            click = index
    return rows


def _terminate(row: Row) -> Row:
    """A terminate on the page of a row."""
    columns = ("session_id", "user_id", "page", "url", "timestamp", "row")
    return {**{name: row.get(name) for name in columns}, "type": "terminate"}
