"""Counts how many targets of an import's first sessions are on their page, and warns if there are few."""

from collections.abc import Iterator

from replay_sessions.elements import page_names
from replay_sessions.importers.importer import Read
from replay_sessions.importers.logged_pages import NOT_FOUND
from replay_sessions.store.audit.judge import describe_shift
from replay_sessions.store.audit.scan import add_counts, count_matches

_SESSIONS = 50  # a wrong mapping is wrong from the start
_LEAST = 0.5


class Grounding:
    """Counts of targets on their pages, over the first sessions of an import."""

    def __init__(self) -> None:
        self._counts: dict[int, tuple[int, int]] = {}  # by page offset: targets on that page, and all targets
        self._not_found = 0
        self._pages = 0
        self._nameless_pages = 0
        self._sessions = 0

    def add(self, read: Read) -> None:
        """Counts the targets of a session, and its actions that were left out because their page lacks the element."""
        if self._sessions >= _SESSIONS:
            return
        self._not_found += sum(action_type.endswith(NOT_FOUND) for action_type in read.left_out)
        if (session := read.session) is not None:
            self._sessions += 1
            self._pages += len(session.steps)
            self._nameless_pages += sum(not page_names(step.page) for step in session.steps)
            matches = [(offset, count) for (_, offset), count in count_matches(session).items()]
            self._counts = add_counts([*self._counts.items(), *matches])

    def warnings(self) -> Iterator[str]:
        """Yields a warning with the likely cause if fewer than half of the targets are on their page."""
        on_page, resolved = self._counts.get(0, (0, 0))
        targets = resolved + self._not_found
        if on_page >= _LEAST * targets:
            return
        shares = {offset: hits / total for offset, (hits, total) in self._counts.items()}
        if shift := describe_shift(shares):
            cause = shift
        elif 2 * self._nameless_pages > self._pages:
            cause = (
                "most pages hold no element with a name: give their notation under [page] of the mapping, or, if they "
                'are raw, pages = "raw"'
            )
        elif 2 * self._not_found > targets:
            cause = (
                "most are not found by what the log gives (rejected.jsonl has the reasons): save pages as the browser "
                "shows them, when its scripts have run"
            )
        else:
            cause = "the log names elements otherwise than its pages do: map `name` to the field with the pages' names"
        share = f"only {on_page:,} of the first {targets:,} targets ({on_page / targets:.0%})"
        yield f"{share} stand on their page; {cause}"
