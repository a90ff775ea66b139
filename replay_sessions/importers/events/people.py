"""Finds the user of each session of a log, and the visits of events without the id of a session.

A person who logs in on several browsers is one user, whose id is the customer's. Browsers are joined by a customer
alone, never by each other, so that a browser that many people share joins nobody:

    a session in which a customer logged in           is the first such customer's
    another session of a browser of one customer      is that customer's
    another session of a browser of several, or none  is the browser's

Ids that shops log for whoever is not logged in ("0", "guest") are nobody's, and so is an id of very many browsers: more
than 3 of up to 12, a quarter of up to 40, 10 of up to 200, 5% of more. An event without a session, or with the user's
id for it, belongs to the visit of its browser at its time, or to that of its customer if it names no page, such as a
purchase that a server sent.
"""

import hashlib
from bisect import bisect, insort
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from replay_sessions.foundation.times import seconds
from replay_sessions.importers.events.mapping import decode_events
from replay_sessions.importers.importer import listed
from replay_sessions.importers.sources.row_tables import Row, RowTable

BROWSERS = "browsers"  # the column of the browsers that only the row's customer has, if there are several, in JSON
NO_VISIT = "it has no session, and its user has no visit at its time"
IDLE_MINUTES = 30.0
_WORDS = "anon anonymous default false guest logged_out n/a na nan nobody none null test true undefined unknown visitor"
_NOBODY = frozenset({"", "-1", *_WORDS.split()})
_HASHED = frozenset(
    hashlib.new(name, word.encode()).hexdigest() for word in {*_NOBODY, "0"} for name in ("md5", "sha1", "sha256")
)
Column = list[str | None]
_Timeline = list[tuple[float, str]]


def is_person(text: str | None) -> bool:
    """Returns whether an id may be a person's or a browser's, and not what stands for a missing one.

    >>> [is_person(text) for text in ("17", "0", "Guest", "00000000-0000-0000-0000-000000000000")]
    [True, False, False, False]
    """
    plain = (text or "").strip().lower()
    return bool(plain.strip("0-")) and plain not in _NOBODY | _HASHED


class People:
    """The customers and the visits of the rows of a log.

    Args:
        table: The log's rows, each with the ids of its session, browser (`user_id`) and customer, which may be missing.
        idle_minutes: The longest pause between an event without a session and its visit. If None, IDLE_MINUTES.

    Attributes:
        table: The rows that have a session, with the customer of each row where there is one.
        lost: The words of the events of the rows that have no session; they are rejected.
        report: Lines about the users.
    """

    def __init__(self, table: RowTable, idle_minutes: float | None) -> None:
        self._idle_s = 60 * (idle_minutes or IDLE_MINUTES)
        self._browsers, customers = list(table.values("user_id")), list(table.values("customer_id"))
        self._sessions = list(table.values("session_id"))
        visitors = [name if session else None for name, session in zip(self._browsers, self._sessions, strict=True)]
        self._nobody = _find_nobody(visitors, customers)  # a server may make up a browser for each event
        self._customers = [name if is_person(name) and name not in self._nobody else None for name in customers]
        self._customers_of: defaultdict[str, set[str]] = defaultdict(set)  # by browser
        for browser, customer in zip(self._browsers, self._customers, strict=True):
            if customer and browser and is_person(browser):
                self._customers_of[browser].add(customer)
        only = {browser: next(iter(names)) for browser, names in self._customers_of.items() if len(names) == 1}
        self._customers = [
            customer or only.get(browser or "")
            for browser, customer in zip(self._browsers, self._customers, strict=True)
        ]
        self._joined = 0  # events without a session that joined a visit
        events = list(table.values("events"))
        self._find_visits(list(table.values("timestamp")), events)
        lost = (text or "" for session, text in zip(self._sessions, events, strict=True) if session is None)
        self.lost = Counter(decode_events(text)[0].word for text in lost)
        browsers_of: defaultdict[str | None, list[str]] = defaultdict(list)
        for browser, customer in only.items():
            browsers_of[customer].append(browser)
        several = {customer: names for customer, names in browsers_of.items() if len(names) > 1}
        texts = {customer: msgspec.json.encode(names).decode() for customer, names in several.items()}
        browsers = list(map(texts.get, self._customers))
        columns = {"session_id": self._sessions, "customer_id": self._customers, BROWSERS: browsers}
        self.table = table.replace(columns, NO_VISIT)
        self.report = list(self._describe(len(several), sum(map(len, several.values()))))

    def _ids(self, row: int) -> dict[str, str]:
        """Returns the ids of a row's browser and customer."""
        ids = {"browser": self._browsers[row], "customer": self._customers[row]}
        return {kind: name for kind, name in ids.items() if name}

    def _find_visits(self, times: Column, events: Column) -> None:
        """Gives each row without a session of its own the session of its visit, if there is one."""
        rows = [row for row, session in enumerate(self._sessions) if session in (None, *self._ids(row).values())]
        if not rows or (len(rows) == len(times) and not self._customers_of and None not in self._sessions):
            return  # all visits have ids, or none has
        timelines: defaultdict[tuple[str, str], _Timeline] = defaultdict(list)
        for row in set(range(len(times))).difference(rows):
            if (time := seconds(times[row])) is not None:
                for key in self._ids(row).items():
                    timelines[key].append((time, self._sessions[row] or ""))
        for timeline in timelines.values():
            timeline.sort()
        for time, row in sorted((seconds(times[row]) or 0, row) for row in rows):
            keys = list(self._ids(row).items())
            has_page = any(event.path for event in decode_events(events[row] or ""))
            visits = [self._visit_at(timelines[key], time) for key in keys[: 1 if has_page else None]]
            session = next(filter(None, visits), self._sessions[row])
            self._joined += session != self._sessions[row]
            self._sessions[row] = session
            if session:
                for key in keys:
                    insort(timelines[key], (time, session))

    def _visit_at(self, timeline: _Timeline, time: float) -> str | None:
        """Returns the session of the last event up to a time, or else of the next one, if it is near enough."""
        after = bisect(timeline, (time, "\U0010ffff"))
        for index in (after - 1, after):
            if 0 <= index < len(timeline) and abs(timeline[index][0] - time) <= self._idle_s:
                return timeline[index][1]
        return None

    def _describe(self, customers: int, browsers: int) -> Iterator[str]:
        """Yields the lines of the report about customers with several browsers, and about these browsers."""
        if self._customers_of:
            shared = sum(len(names) > 1 for names in self._customers_of.values())
            yield (
                f"users: {browsers:,} browsers are {customers:,} customers who logged in on several; {shared:,} "
                "browsers are of several customers each, and their visits without a login stay the browser's"
            )
        if self._nobody:
            yield f"on so many browsers that they are taken as no customer's ids: {listed(sorted(self._nobody))}"
        if self._joined:
            yield f"events without a session that joined their user's visit of that time: {self._joined:,}"


def read_ids(rows: Sequence[Row]) -> list[str]:
    """Returns the ids of a visit's user: first of customers, then of the visit's browser, then of their others."""
    ids = dict.fromkeys(row[column] for column in ("customer_id", "user_id") for row in rows if row[column])
    for text in {row[BROWSERS]: None for row in rows if row[BROWSERS]}:
        ids |= dict.fromkeys(msgspec.json.decode(text))
    return list(ids)


def _find_nobody(browsers: Sequence[str | None], customers: Sequence[str | None]) -> set[str]:
    """Returns the ids of customers that very many browsers have."""
    pairs = {(browser, customer) for browser, customer in zip(browsers, customers, strict=True) if browser and customer}
    counts = Counter(customer for _, customer in pairs)
    total = len(set(browsers) - {None})
    most = max(3, min(10, total / 4), total / 20)
    return {customer for customer, count in counts.items() if count > most and is_person(customer)}
