"""A recording's timeline -> rows as the importer `raw` reads them -> sessions.

A session ends with a purchase; where the shopper leaves, by a click on what `leave_selector` matches or to an address
that holds `leave_url`; in a pause of `idle_minutes`, after which another begins; or where the recording ends, if
`terminate_at_end` says so. A terminate stands on the page that was shown then.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import msgspec

from replay_sessions.errors import BadConfig
from replay_sessions.importers.importer import Imported
from replay_sessions.importers.raw.endings import PURCHASE, Endings
from replay_sessions.importers.raw.rows import Row
from replay_sessions.importers.raw.steps import read_rows
from replay_sessions.importers.raw.targets import Unresolved
from replay_sessions.importers.rrweb.acted_pages import ActedPage
from replay_sessions.importers.rrweb.page_helpers import kept
from replay_sessions.importers.rrweb.remarks import PERSONA, PURCHASE_TAG, RATIONALE, SESSION
from replay_sessions.importers.rrweb.timeline import Act, Address, Left, NotRead, Pause, Remark, Timeline, View
from replay_sessions.importers.rrweb.typed_texts import learn_from, without_secrets
from replay_sessions.simplify.private_data import remove_from_text
from replay_sessions.store.manifest import SetAside

__all__ = ["Leaving", "SessionReader"]

_NOTHING_THERE = "click on nothing that can be acted on"
_TAKEN_BACK = "typed text that was taken back"
_SESSION_FIELDS = ("session_id", "user_id", "goal")
_MOST_TOLD = 20  # faults of one recording that are listed one by one


class Leaving(Endings, frozen=True, kw_only=True):
    """What ends a session.

    Attributes:
        purchase_selector: A click on what this CSS selector matches buys, and is the session's last.
        purchase_url: The last click before an address that holds this text buys, and is the last.
        leave_selector: A click on what this CSS selector matches is leaving: a terminate in its place.
        leave_url: The last click before an address that holds this text is leaving: a terminate in its place.
        idle_minutes: When nothing is done for longer, a session ends in a terminate and another begins.
        terminate_at_end: A terminate where a recording ends otherwise.
    """

    leave_selector: str | None = None
    leave_url: str | None = None

    def check(self) -> None:
        super().check()
        try:
            Endings(purchase_selector=self.leave_selector).check()
        except BadConfig as error:
            raise BadConfig(f"--leave-selector: {error}") from error

    @property
    def selectors(self) -> tuple[str, ...]:
        return tuple(selector for selector in (self.purchase_selector, self.leave_selector) if selector)


class SessionReader:
    """Reads sessions of timelines.

    Args:
        settle: Simplifies the page of a view.
        max_masked: A recording whose pages' letters are masked beyond this share is set aside.
    """

    def __init__(
        self,
        leaving: Leaving,
        settle: Callable[[View], ActedPage | str],
        *,
        max_masked: float,
        private_data: bool,
        source: str,
        longest_bytes: int,
    ) -> None:
        self._leaving = leaving
        self._settle = settle
        self._max_masked = max_masked
        self._private_data = private_data
        self._source = source
        self._longest_bytes = longest_bytes

    def read(self, timeline: Timeline, session_id: str, where: str) -> Iterator[Imported]:
        """The sessions of a recording, what was left out of them, and why.

        Args:
            session_id: That of the first, if the recording names none.
            where: The recording, as it is told of.
        """
        faults = [entry for entry in timeline if isinstance(entry, NotRead)]
        for fault in faults[:_MOST_TOLD]:
            yield SetAside(where=f"{where}:{fault.number}", reason=fault.reason)
        if len(faults) > _MOST_TOLD:
            yield SetAside(where=where, reason=f"{len(faults) - _MOST_TOLD} more events cannot be read")
        masked = _masked_share(timeline)
        if masked > self._max_masked:
            allowed = f"more than --max-masked {self._max_masked:g}"
            reason = f"{masked:.0%} of the letters on its pages are masked (***): {allowed}"
            yield SetAside(where=where, reason=reason)
            return
        said_and_done = list(self._parts(timeline))
        about: dict[str, str] = {name: text for _, said in said_and_done for name, text in said.items()}
        first_id = about.pop("session_id", session_id)
        user_id = about.pop("user_id", first_id)
        parts = [rows for rows, _ in said_and_done if rows]
        if not parts:
            yield SetAside(where=where, reason="nothing was done in it: neither a click nor a typed text")
        for number, part in enumerate(parts, start=1):
            own_id = first_id if number == 1 else f"{first_id} ({number})"
            own: Row = {"session_id": own_id, "user_id": user_id, **about}
            rows = [{**row, **own, "page": str(place)} for place, (row, _) in enumerate(part)]
            pages = _Pages([page for _, page in part], private_data=self._private_data)
            yield from read_rows(
                rows, pages, self._source, where, has_bought=_has_bought, longest_bytes=self._longest_bytes
            )

    def _parts(self, timeline: Timeline) -> Iterator[tuple[list[tuple[Row, ActedPage | str]], dict[str, str]]]:
        """The rows between two pauses, with their pages, and what is said there of the session."""
        part = _Part()
        for entry in timeline:
            match entry:
                case Act():
                    part.do(entry, self._leaving)
                case Left():
                    part.done.append(entry)
                case Address():
                    part.go(entry, self._leaving)
                case Remark():
                    part.remark(entry)
                case Pause():
                    rows = part.rows()
                    ends_here = part.is_open and (self._leaving.terminate_at_end or not entry.is_end)
                    if ends_here and isinstance(seen := self._settle(entry.view), ActedPage):
                        rows.append((_row("terminate", entry), seen))
                    yield rows, part.about
                    part = _Part()


class _Part:
    """What was done between two pauses."""

    def __init__(self) -> None:
        self.done: list[Act | Left] = []
        self.about: dict[str, str] = {}
        self._since_address: dict[str, list[Act]] = {}

    @property
    def is_open(self) -> bool:
        """Whether something was done, and nothing of it ends the session."""
        is_any = any(isinstance(act.page, ActedPage) and act.page.name is not None for act in self._acts())
        return is_any and not self._has_ended()

    def do(self, act: Act, leaving: Leaving) -> None:
        self.done.append(act)
        self._since_address.setdefault(act.window, []).append(act)
        if act.kind == "click" and isinstance(act.page, ActedPage) and not self._has_ended():
            act.buys = leaving.purchase_selector in act.page.matched
            act.leaves = not act.buys and leaving.leave_selector in act.page.matched

    def go(self, address: Address, leaving: Leaving) -> None:
        """Notes what an address tells of what was done before it."""
        click = self._last_click(address.window)
        if click is not None and not self._has_ended():
            click.buys = bool(leaving.purchase_url and leaving.purchase_url in address.href)
            click.leaves = bool(not click.buys and leaving.leave_url and leaving.leave_url in address.href)
        learn_from(address, self._since_address.pop(address.window, []))

    def remark(self, remark: Remark) -> None:
        """Notes what our own recorder says."""
        acts = [act for act in self._acts() if not act.is_part]
        here = [act for act in acts if act.window == remark.window] or acts
        click = self._last_click(remark.window)
        if remark.tag == PURCHASE_TAG and click is not None:
            click.buys = not self._has_ended()
        elif remark.tag == RATIONALE and here:
            here[-1].rationale = remark.fields.get("text")
        elif remark.tag == PERSONA and "text" in remark.fields:
            self.about["persona"] = remark.fields["text"]
        elif remark.tag == SESSION:
            self.about |= {name: remark.fields[name] for name in _SESSION_FIELDS if name in remark.fields}

    def rows(self) -> list[tuple[Row, ActedPage | str]]:
        """Rows of what was done, and the page of each or why there is none."""
        rows: list[tuple[Row, ActedPage | str]] = []
        has_left = False
        for entry in self.done:
            if isinstance(entry, Left):
                rows.append(({"type": entry.what, "row": str(entry.number)}, entry.reason))
            elif not entry.is_part:
                kind = f"{_kind(entry)} after leaving" if has_left else "terminate" if entry.leaves else _kind(entry)
                has_left = has_left or entry.leaves
                page = kept(entry.page)
                if entry.kind == "click" and entry.is_masked and isinstance(page, ActedPage):
                    page = msgspec.structs.replace(page, name="")  # which option it was is unknown
                rows.append((_row(kind, entry), page))
        return rows

    def _acts(self) -> list[Act]:
        return [entry for entry in self.done if isinstance(entry, Act)]

    def _has_ended(self) -> bool:
        return any(act.buys or act.leaves for act in self._acts())

    def _last_click(self, window: str) -> Act | None:
        """The last click in a window; where there is none, in any."""
        clicks = [act for act in self._acts() if act.kind == "click"]
        here = [act for act in clicks if act.window == window]
        return here[-1] if here else clicks[-1] if clicks else None


class _Pages:
    """The pages of a part's rows, as the importer `raw` asks for them: by their numbers."""

    def __init__(self, pages: list[ActedPage | str], *, private_data: bool) -> None:
        self.private_data = private_data
        self._pages = pages

    def page(self, file: str) -> ActedPage:
        page = self._pages[int(file)]
        if isinstance(page, str):
            raise Unresolved(page)
        return page

    def told(self, reason: str) -> str:
        return remove_from_text(reason) if self.private_data else reason


def _kind(act: Act) -> str:
    """What an act is, in the words of `raw`; another word is counted as no action."""
    if act.kind == "click":
        is_on_nothing = isinstance(act.page, ActedPage) and act.page.name is None and not act.is_masked
        return _NOTHING_THERE if is_on_nothing else "click"
    if not act.text:
        return _TAKEN_BACK
    return "type_and_submit" if act.submitted else "input"


def _row(kind: str, act: Act | Pause) -> Row:
    row: Row = {
        "type": kind,
        "row": str(act.number),
        "url": without_secrets(act.href) or None,
        "timestamp": _time(act.timestamp),
    }
    if isinstance(act, Act):
        row["text"] = None if act.is_masked or act.is_secret else act.text
        row["rationale"] = act.rationale
        row["click_type"] = PURCHASE if act.buys else None
    return row


def _has_bought(row: Row, action: object, page: object) -> bool:
    return row.get("click_type") == PURCHASE


def _time(milliseconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None


def _masked_share(timeline: Timeline) -> float:
    pages = [act.page for act in timeline if isinstance(act, Act) and isinstance(act.page, ActedPage)]
    letters = sum(page.letters for page in pages)
    return sum(page.masked for page in pages) / letters if letters else 0.0
