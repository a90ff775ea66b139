"""Runs an importer and writes its sessions to a store.

Records that cannot be read are rejected and counted. The same source gives the same store for any number of processes.
Memory is bounded by the parts in flight, not by the source. An import that is stopped leaves nothing.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import msgspec

from replay_sessions.foundation.errors import BadSession, ImportFailed
from replay_sessions.importers.cleaner import Cleaner
from replay_sessions.importers.importer import Importer, Read
from replay_sessions.importers.running.engines import Engine, Item, read_batches
from replay_sessions.importers.running.grounding import Grounding
from replay_sessions.schema import Session
from replay_sessions.store.manifest import Rejected
from replay_sessions.store.splits import SplitPlan
from replay_sessions.store.work_folder import rewriting
from replay_sessions.store.writer import StoreWriter


def run_import(
    importer: Importer,
    out: str | Path,
    *,
    splits: SplitPlan | None = None,
    overwrite: bool = False,
    workers: int | None = 1,
    engine: Engine = "processes",
    cleaner: Cleaner | None = None,
    on_progress: Callable[[int], None] = lambda size: None,
) -> None:
    """Writes the importer's sessions to a store.

    Args:
        workers: Number of processes that read. If None, one per core if reading takes longer than starting them.
        engine: "ray" reads the parts on a Ray cluster that shares the source's folder.
        cleaner: Removes private data. If None, nothing is known of users, and only marked values are removed.
        on_progress: Function that is called with the amount read since the last call, in units of `Importer.size`.

    Raises:
        BadConfig: Another process rewrites the store that is to be replaced.
        ImportFailed: The source is damaged, no session could be read, or a process was killed.
        WriteFailed: The system refused.
    """
    options = {"private_data": "none"} | importer.settings
    cleaner = cleaner or Cleaner()
    with (
        rewriting(Path(out)) if overwrite else nullcontext(),  # else `erase` would not reach what is read meanwhile
        StoreWriter(out, source=importer.name, splits=splits, overwrite=overwrite, options=options) as writer,
    ):
        first_reason, grounding = "", Grounding()
        for read in cleaner.clean_all(_read_all(importer, workers, engine, on_progress)):
            grounding.add(read)
            for rejected in _write(writer, read):
                first_reason = first_reason or f"{rejected.where}: {rejected.reason}"
                writer.reject(rejected.where, rejected.reason)
        importer.warnings += grounding.warnings()
        writer.warnings = list(map(cleaner.clean_message, importer.warnings))
        if cleaner.contacts:
            writer.options["kept_contacts"] = str(len(cleaner.contacts))
        if not writer.sessions:
            reason = " ".join(first_reason.split())[:500] or "the source is empty"
            raise ImportFailed(f"no session could be imported: {reason}")


def _read_all(
    importer: Importer, workers: int | None, engine: Engine, on_progress: Callable[[int], None]
) -> Iterator[Read]:
    is_ours = type(importer).__module__.startswith("replay_sessions.")
    number = itertools.count(1)
    for batch, items in read_batches(importer, workers=workers, engine=engine):
        for item in items:
            match item if is_ours else _checked(item, next(number)):
                case Read() as read:
                    yield read
                case Session() as session:
                    yield Read(session)
                case rejected:
                    yield Read(rejected=[rejected])
        on_progress(batch.size)


def _checked(item: object, number: int) -> Item:
    """Checks the fields of an importer's item, because Structs are built unchecked; returns it, or a Rejected."""
    try:
        if not isinstance(item, Item):
            raise TypeError(f"a {type(item).__name__} is no Session, Rejected or Read")
        return msgspec.convert(msgspec.to_builtins(item), type(item))
    except (TypeError, msgspec.ValidationError) as error:
        return Rejected(where=f"item {number} of the importer", reason=str(error))


def _write(writer: StoreWriter, read: Read) -> Iterator[Rejected]:
    """Adds what was read to a store; yields the records to reject."""
    yield from read.rejected
    writer.trimmed_texts += read.trimmed_texts
    writer.changed_values.update(read.changed_values)
    for action_type in read.left_out:
        writer.leave_out(action_type)
    if read.session is not None:
        try:
            writer.write(read.session)
        except BadSession as error:
            location = read.session.session_id.encode("utf-8", errors="backslashreplace").decode()
            yield Rejected(where=location, reason=str(error))
