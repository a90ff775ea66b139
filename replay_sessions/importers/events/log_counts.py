"""Reports on the events of a log: the shares that became actions, rejections, and warnings."""

from collections import Counter
from collections.abc import Iterator

from replay_sessions.importers.events.event_reader import EventReader
from replay_sessions.importers.events.mapping import ACTION_KINDS, VIEWS, Event, EventMapping, View
from replay_sessions.importers.events.prices import currency_of
from replay_sessions.importers.events.shop import Shop
from replay_sessions.importers.events.visits import Visit
from replay_sessions.scored_kinds import ScoredKinds
from replay_sessions.store.manifest import format_counts

LEAST_SHARE = 0.95  # a smaller share of the events of a kind that become actions gives a warning
_KINDS = (*ACTION_KINDS, "search")
_REASONS = 3


class LogCounts:
    """Counts over all events and visits of a log."""

    def __init__(self, reader: EventReader, mapping: EventMapping) -> None:
        self._reader = reader
        self._mapping = mapping
        self._events: Counter[str | None] = Counter()
        self._currencies: Counter[str] = Counter()
        self._actions: Counter[tuple[str | None, bool]] = Counter()
        self._inferred: Counter[bool] = Counter()
        self._scored = ScoredKinds()
        self._terminates: Counter[tuple[View, bool]] = Counter()  # by kind of page, because they depend on all visits

    def add_event(self, event: Event) -> Event:
        """Counts an event and returns it."""
        self._events[event.kind] += 1
        for offer in event.offers:
            if offer.price:
                self._currencies[currency_of(offer.price)] += 1
        return event

    def add_visit(self, visit: Visit, *, is_rejected: bool) -> None:
        self._actions.update((kind, became and not is_rejected) for kind, became in visit.actions.elements())
        if is_rejected:
            return
        for session in visit.sessions:
            rows = [row for row in session if row["type"]]
            self._inferred.update(bool(row.get("is_inferred")) for row in rows if row["type"] != "terminate")
            for row in rows[1:]:
                is_inferred = bool(row.get("is_inferred"))
                if row["type"] == "terminate":
                    self._terminates[row["page"].kind, is_inferred] += 1
                else:
                    self._scored.add(row["type"], row["name"], is_inferred=is_inferred)

    def report(self, shop: Shop) -> Iterator[str]:
        """Yields the lines of the report at the end of an import."""
        for kind, became, count in self._shares():
            yield f"{kind}: {became:,} of {count:,} became actions ({became / count:.1%})"
        inferred = self._inferred[True]
        total = self._inferred.total()
        yield f"inferred: {inferred:,} of {total:,} actions before the end; the log has only the page after them"
        for (kind, is_inferred), count in self._terminates.items():
            self._scored.add("terminate", None, is_inferred=is_inferred or kind not in shop.acted_on, count=count)
        yield f"scored: {self._scored.describe()}; first actions aside, and inferred ones unless --inferred"
        if shop.catalogue:
            yield self._describe_catalogue(shop)
        if unread := self._reader.unread:
            yield f"passed over, because they cannot be read: {format_counts(unread)}"
        for reason, words in sorted(self._reader.rejected.items(), key=lambda item: -item[1].total())[:_REASONS]:
            yield f"rejected: {words.total():,} because {reason} ({format_counts(words)})"

    def _describe_catalogue(self, shop: Shop) -> str:
        """Says on which pages the log shows no lists, and what these pages offer."""
        kinds = format_counts(Counter[str](map(shop.kind_of, shop.catalogue)))
        single = sum(len(offers) == 1 for offers in shop.catalogue.values())
        has_some = "not logged everywhere" if shop.has_lists else "the log has none"
        return (
            f"lists: {has_some}; without one, pages offer what was clicked there (`min_clicks = "
            f"{self._mapping.min_clicks}`): {kinds}; {single:,} offer a single product"
        )

    def warnings(self) -> Iterator[str]:
        """Yields the warnings about a log."""
        if names := ", ".join(sorted(self._reader.unfilled)):
            yield f"no event has a value for {names}: correct the mapping's paths, or leave these keys out"
        for kind, became, count in self._shares():
            if became < LEAST_SHARE * count:
                share = f"only {became / count:.0%}" if became else "not one"
                yield f"{share} of {count:,} {kind} events became an action; what was left out and rejected says why"
        if not any(self._events[kind] for kind in _KINDS):
            yield "the log has views alone: every action is inferred, and none is scored without --inferred"
        if not any(self._events[kind] for kind in VIEWS):
            yield "the log has no views: pages are written from the actions alone"
        if len(self._currencies) > 1:
            counts = format_counts({name or "no currency": count for name, count in self._currencies.most_common()})
            remedy = "map `price` to a column in one currency, if there is one, and no `currency`"
            yield f"prices are in several currencies ({counts}), and models compare them as numbers: {remedy}"
        elif "" in self._currencies:
            yield "prices have no currency, so `choice` and `ab` read none of them: set `currency` in the mapping"

    def _shares(self) -> Iterator[tuple[str, int, int]]:
        """Yields each kind that the log has, the number of its events that became actions, and the number of all."""
        lost: Counter[str] = Counter()
        for word, count in sum(self._reader.rejected.values(), Counter[str]()).items():
            lost.update(dict.fromkeys(self._mapping.kinds_of(word), count))
        for kind in _KINDS:
            became = self._actions[kind, True]
            if count := became + self._actions[kind, False] + lost[kind]:
                yield kind, became, count
