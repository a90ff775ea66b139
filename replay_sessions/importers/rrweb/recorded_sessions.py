"""Converts a recording's timeline to rows as the importer `raw` reads them, and the rows to sessions.

A session ends with a purchase, in a pause of `idle_minutes`, after which another session begins, or at the end of the
recording, with a terminate if `terminate_at_end` is set. A terminate is on the page that was shown at that time.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from replay_sessions.importers.importer import Read
from replay_sessions.importers.logged_pages import Pages, Unresolved
from replay_sessions.importers.raw.endings import Endings
from replay_sessions.importers.rrweb.events import Unread
from replay_sessions.importers.rrweb.pages import ActedPage, PageReader
from replay_sessions.importers.rrweb.timeline import (
    GOAL,
    PERSONA,
    PURCHASE_TAG,
    RATIONALE,
    SESSION,
    Act,
    Address,
    NoAction,
    Pause,
    Remark,
    Timeline,
)
from replay_sessions.importers.rrweb.typed_texts import learn_from
from replay_sessions.importers.sessions import PURCHASE, build_session
from replay_sessions.importers.sources.row_tables import Row

_NOTHING_THERE = "click on nothing that can be acted on"
_TAKEN_BACK = "typed text that was taken back"
_ABOUT = {GOAL: "goal", PERSONA: "persona"}
_SESSION_FIELDS = ("session_id", "user_id", "goal")
_MOST_MASKED = 0.5
_MASKED = re.compile(r"\*{2,}")
_TAG = re.compile(r"<[^>]*>")


class RrwebOptions(Endings):
    """The options of the importer `rrweb`.

    Attributes:
        purchase_selector: CSS selector of purchase buttons; a click on a match is the session's last step.
        purchase_url: Text in the address after a purchase; the last click before it is the session's last step.
        idle_minutes: Longest pause within a session; a longer one ends it with a terminate, and another begins.
        terminate_at_end: Add a terminate at the end of a recording; not after a purchase.
        recipe: Recipe for the site's pages, a NAME or a FILE; None: it is chosen by the site.
        keep_private_data: Do not remove private values.
        session_key: For rows of a data base: the column with the session's id; None: `session_id` or similar.
        event_path: For such rows: the path to the event or events, such as `payload.events`; None: `event`, `events`,
            `data` or similar.
    """

    recipe: str | None = None
    session_key: str | None = None
    event_path: str | None = None
    keep_private_data: bool = False


def read_sessions(
    timeline: Timeline, options: RrwebOptions, reader: PageReader, *, session_id: str, location: str
) -> Iterator[Read]:
    """Yields the rejected records of a recording, and its sessions.

    Args:
        session_id: Id of the first session, if the recording has none.
        location: Name of the recording in messages.
    """
    recording = Read()
    for entry in timeline:
        if isinstance(entry, Unread):
            recording.reject(f"{location}:{entry.number}", entry.reason)
    masked = _masked_share([act.page for act in timeline if isinstance(act, Act) and isinstance(act.page, ActedPage)])
    if masked > _MOST_MASKED:
        recording.reject(location, f"{masked:.0%} of the letters on its pages are masked (***)")
        yield recording
        return
    about: dict[str, str] = {}
    parts: list[list[Row]] = []
    for part in _read_parts(timeline, options, reader):
        about |= part.about
        parts += [part.rows] if part.rows else []
    first_id = about.pop("session_id", session_id)
    user_id = about.pop("user_id", first_id)
    if not parts:
        recording.reject(location, "nothing was done in it: neither a click nor a typed text")
    yield recording
    for number, rows in enumerate(parts, start=1):
        numbered_id = first_id if number == 1 else f"{first_id} ({number})"
        yield build_session(
            [row | about | {"session_id": numbered_id, "user_id": user_id} for row in rows],
            _RecordedPages(private_data=not options.keep_private_data),
            source="rrweb",
            row_prefix=f"{location}:",
        )


def _masked_share(pages: list[ActedPage]) -> float:
    """Returns the share of masked letters on pages, without fields, because recorders usually mask fields."""
    texts = [_TAG.sub("", page.page.html) for page in pages]
    masked = sum(len(stars) for text in texts for stars in _MASKED.findall(text))
    return masked / (sum(len("".join(text.split())) for text in texts) or 1)


def _read_parts(timeline: Timeline, options: RrwebOptions, reader: PageReader) -> Iterator["_Part"]:
    """Yields the acts between two pauses, for each pair of pauses."""
    part = _Part()
    for entry in timeline:
        match entry:
            case Act():
                part.do(entry)
            case NoAction():
                part.entries.append(entry)
            case Address():
                part.go(entry, options.purchase_url)
            case Remark():
                part.remark(entry)
            case Pause():
                part.add_rows()
                if part.is_open and (options.terminate_at_end or not entry.is_end):
                    # If the end could not be read, the page is unknown, so that the terminate is counted as left out.
                    part.rows.append(_row("terminate", entry, reader.read(entry.view)))
                yield part
                part = _Part()


class _Part:
    """The acts between two pauses, their rows, and what remarks tell about the session."""

    def __init__(self) -> None:
        self.entries: list[Act | NoAction] = []
        self.acts: list[Act] = []
        self.about: dict[str, str] = {}
        self.rows: list[Row] = []  # with the page of each row, or the reason why it has none
        self._since_address: dict[str, list[Act]] = {}

    @property
    def is_open(self) -> bool:
        """True if something was done and none of it ends the session."""
        is_any = any(isinstance(act.page, ActedPage) and act.page.name is not None for act in self.acts)
        return is_any and not self._has_bought()

    def do(self, act: Act) -> None:
        self.entries.append(act)
        self.acts.append(act)
        self._since_address.setdefault(act.window, []).append(act)
        if act.kind == "click" and isinstance(act.page, ActedPage) and act.page.buys:
            self._buy(act)

    def go(self, address: Address, purchase_url: str | None) -> None:
        """Uses a new address to complete the acts before it."""
        if purchase_url and purchase_url in address.href:
            self._buy(self._last_click(address.window))
        learn_from(address, self._since_address.pop(address.window, []))

    def remark(self, remark: Remark) -> None:
        """Uses a note of our own recorder."""
        acts = [act for act in self.acts if not act.is_part]
        acts_in_window = [act for act in acts if act.window == remark.window] or acts
        if remark.tag == PURCHASE_TAG:
            self._buy(self._last_click(remark.window))
        elif remark.tag == RATIONALE and acts_in_window:
            acts_in_window[-1].rationale = remark.payload.text
        elif remark.tag in _ABOUT and remark.payload.text:
            self.about[_ABOUT[remark.tag]] = remark.payload.text
        elif remark.tag == SESSION:
            self.about |= {name: text for name in _SESSION_FIELDS if (text := getattr(remark.payload, name))}

    def add_rows(self) -> None:
        """Converts the acts to rows."""
        for entry in self.entries:
            if isinstance(entry, NoAction):
                self.rows.append({"type": entry.name, "row": str(entry.number), "page": entry.reason})
            elif not entry.is_part:
                page = entry.page
                if entry.kind == "click" and entry.is_masked and isinstance(page, ActedPage):
                    page = msgspec.structs.replace(page, name="")  # the chosen option is unknown
                self.rows.append(_row(_row_type(entry), entry, page))

    def _buy(self, click: Act | None) -> None:
        """Makes a click the purchase, unless there was one."""
        if click is not None and not self._has_bought():
            click.buys = True

    def _has_bought(self) -> bool:
        return any(act.buys for act in self.acts)

    def _last_click(self, window: str) -> Act | None:
        """Returns the last click in a window or, if the window has none, in any window."""
        clicks = [act for act in self.acts if act.kind == "click"]
        clicks.sort(key=lambda click: click.window == window)
        return clicks[-1] if clicks else None


class _RecordedPages(Pages):
    """Simplified pages that are in the rows, or the reasons why they are missing."""

    def __init__(self, *, private_data: bool) -> None:
        self.removes_private_data = private_data

    def page(self, row: Row) -> ActedPage:
        page = row["page"]
        if not isinstance(page, ActedPage):
            raise Unresolved(page, "without a page")
        return page


def _row_type(act: Act) -> str:
    """Returns the type of an act in the words of `raw`; any other word counts as no action."""
    if act.kind == "click":
        is_on_nothing = (
            isinstance(act.page, ActedPage) and act.page.name is None and not (act.is_masked or act.page.is_hidden)
        )
        return _NOTHING_THERE if is_on_nothing else PURCHASE if act.buys else "click"
    if not act.text:
        return _TAKEN_BACK
    return "type_and_submit" if act.submitted else "input"


def _row(kind: str, act: Act | Pause, page: ActedPage | str) -> Row:
    row: Row = {
        "type": kind,
        "row": str(act.number),
        "page": page,
        "url": act.href or None,
        "timestamp": _time(act.timestamp),
    }
    if isinstance(act, Act):
        row["text"] = None if act.is_masked or act.is_secret else act.text
        row["rationale"] = act.rationale
    return row


def _time(milliseconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None
