"""Finds the ends of sessions in a raw log: a purchase, a long pause, or the end of the recording.

Shops' logs seldom say that a shopper left. A terminate is only added if an option asks for it:

    purchase_selector   a click on a match of the selector is a purchase: the session's last step, with click_type
                        "purchase"
    purchase_url        the last click before a page with this text in its address is a purchase, too
    idle_minutes        a longer pause ends a session with a terminate on the page that was shown when the pause began.
                        This is the page of the row after it, which begins another session: "v1", then "v1 (2)"
    terminate_at_end    a recording that ends otherwise ends with a terminate, if the page after the last action is
                        known from a later row of a type that is no action (such as a page view)

A row of type `purchase` is a click that bought, and the last step. A row of type `view` is no action; its page is shown
from then on. After a pause, its page is therefore not the page that was shown when the pause began.

A terminate is never put on a page that nobody saw, because an agent would learn that an empty page means to leave.
"""

from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.records import Record
from replay_sessions.importers.pauses import split_at_pauses
from replay_sessions.importers.sessions import ACTION_ROWS, PURCHASE, VIEW, numbered_session
from replay_sessions.importers.sources.row_tables import Row


class Endings(Record):
    """The options that end sessions; see the module. None and False end none.

    Attributes:
        purchase_selector: CSS selector of purchase buttons; a click on a match is the session's last step.
        purchase_url: Text in the address after a purchase; the last click before it is the session's last step.
        idle_minutes: Longest pause within a session; a longer one ends it with a terminate, and another begins.
        terminate_at_end: Add a terminate at the end of a recording; only if a row after the last action has the page.
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
    """Splits the rows of a recording, in time order, into sessions and marks their ends.

    Rows after a purchase by address stay, because they are counted when they are left out later.
    """
    recordings = list(split_at_pauses(rows, endings.idle_minutes))
    for number, recording in enumerate(recordings, start=1):
        session = _mark_purchase(recording, endings.purchase_url)
        if any(row["type"] == PURCHASE for row in session):
            pass  # the buyer did not leave, even if the clicked element is not found
        elif number < len(recordings):
            last, following = session[-1], recordings[number][0]
            page_row = last if last["type"] == VIEW else None if following["type"] == VIEW else following
            if page_row:
                session = [*session, _terminate(page_row)]
        elif endings.terminate_at_end and session[-1]["type"] not in ACTION_ROWS and session[-1].get("page"):
            session = [*session, _terminate(session[-1])]
        yield numbered_session(session, number)


def _mark_purchase(rows: list[Row], purchase_url: str | None) -> list[Row]:
    """Returns the rows with the last click before a purchase page marked as a purchase.

    A purchase page without a click before it belongs to an earlier purchase and is shown again.
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
    """Returns a terminate on the page of a row."""
    columns = ("session_id", "user_id", "page", "url", "timestamp", "row")
    return {**{name: row.get(name) for name in columns}, "type": "terminate"}
