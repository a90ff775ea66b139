"""Rewrites a store without its faulty sessions, or without sessions that are to be erased."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.progress import track
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.audit.findings import AuditReport
from replay_sessions.store.work_folder import rewriting

# These faults are repaired by leaving sessions out. Shifted pages are not; they need a new import.
_REASONS = {
    "unreadable": "cannot be read as it was written",
    "ungrounded": "too few of its targets stand on the page shown",
    "duplicates": "repeats another session exactly",
    "near_duplicates": "nearly repeats a session in train",
}


@contextmanager
def open_alone(path: Path) -> Iterator[SessionStore]:
    """Opens a store that is to be rewritten, and locks out other processes that would rewrite it meanwhile.

    Raises:
        BadConfig: Another process is rewriting the store.
    """
    with rewriting(path):
        yield SessionStore.open(path)


def repair_store(store: SessionStore, report: AuditReport) -> int:
    """Replaces a store by its sound sessions; the others are rejected with their reasons.

    The old store is unchanged until all sound sessions are written.

    Returns:
        The number of rejected sessions.

    Raises:
        BadConfig: The pages are shifted, or no session is sound.
    """
    shifted = next((fault for fault in report.faults if fault.code == "shifted"), None)
    if shifted:
        raise BadConfig(f"'{store.path}' cannot be repaired by leaving sessions out: {shifted.message}")
    reasons = {
        session_id: _REASONS[fault.code]
        for fault in reversed(report.faults)
        if fault.code in _REASONS
        for session_id in fault.sessions
    }
    if len(reasons) == len(store):
        raise BadConfig(f"'{store.path}' cannot be repaired: every session is at fault; import it again")
    rewrite_store(store, reasons)
    return len(reasons)


def rewrite_store(
    store: SessionStore,
    reasons: Mapping[str, str],
    *,
    forgotten: Collection[str] = (),
    change: Callable[[Session], Session] = lambda session: session,
) -> None:
    """Rewrites a store without some of its sessions.

    Args:
        reasons: For the id of each session to leave out, the reason.
        forgotten: Ids that must not appear in the list of rejected records either.
        change: Function that is applied to the remaining sessions.
    """
    manifest = store.manifest
    with StoreWriter(
        store.path, source=manifest.source, splits=manifest.split_plan, options=manifest.options, overwrite=True
    ) as writer:
        writer.carry_over(store.path, manifest, without=forgotten)
        for session_id in track(store.session_ids(), "writing the store anew"):
            if session_id in reasons:
                writer.reject("a session" if session_id in forgotten else session_id, reasons[session_id])
            else:
                writer.write(change(store.session(session_id)))
