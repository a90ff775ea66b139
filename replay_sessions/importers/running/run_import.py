"""Runs an importer and writes its sessions to a store.

Records that cannot be read are rejected and counted. The same source gives the same store for any number of processes.
Memory is bounded by the parts in flight, not by the source. An import that is stopped leaves nothing.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import assert_never

import msgspec

from replay_sessions.foundation.errors import BadSession, ImportFailed
from replay_sessions.importers.contact_lines import keep_contact_lines
from replay_sessions.importers.customer_sessions import CustomerRemoval
from replay_sessions.importers.importer import ChangedValue, Imported, Importer, LeftOut, Settled, TrimmedText
from replay_sessions.importers.running.engines import Engine, read_batches
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
    removal: CustomerRemoval | None = None,
    on_progress: Callable[[int], None] = lambda size: None,
) -> None:
    """Writes the importer's sessions to a store.

    Args:
        workers: Number of processes that read. If None, one per core if reading takes longer than starting them.
        engine: "ray" reads the parts on a Ray cluster that shares the source's folder.
        removal: Removes the shop's data about the users of sessions. If None, nothing of it is removed.
        on_progress: Function that is called with the amount read since the last call, in units of `Importer.size`.

    Raises:
        BadConfig: Another process rewrites the store that is to be replaced.
        ImportFailed: The source is damaged, no session could be read, or a process was killed.
        WriteFailed: The system refused.
    """
    options = {"private_data": "none"} | importer.settings
    with (
        rewriting(Path(out)) if overwrite else nullcontext(),  # else `erase` would not reach what is read meanwhile
        StoreWriter(out, source=importer.name, splits=splits, overwrite=overwrite, options=options) as writer,
    ):
        count, reason, grounding = 0, "the source is empty", Grounding()
        items = keep_contact_lines(_read_items(importer, workers, engine, on_progress), writer.options)
        for item in removal.apply(items) if removal else items:
            grounding.add(item)
            rejected = _add(writer, item)
            if rejected and not writer.rejected:
                reason = f"{rejected.where}: {rejected.reason}"
            if rejected:
                writer.reject(rejected.where, rejected.reason)
            count += rejected is None and isinstance(item, Session)
        importer.warnings += grounding.warnings()
        writer.warnings = [removal.clean_message(line) if removal else line for line in importer.warnings]
        if not count:
            raise ImportFailed(f"no session could be imported: {' '.join(reason.split())[:500]}")


def _read_items(
    importer: Importer, workers: int | None, engine: Engine, on_progress: Callable[[int], None]
) -> Iterator[Imported]:
    is_ours = type(importer).__module__.startswith("replay_sessions.")
    number = itertools.count(1)
    for batch, items in read_batches(importer, workers=workers, engine=engine):
        yield from items if is_ours else map(_checked, items, number)
        on_progress(batch.size)


def _checked(item: object, number: int) -> Imported:
    """Checks the fields of an importer's item, because Structs are built unchecked; returns it, or a Rejected."""
    try:
        if not isinstance(item, Imported):
            raise TypeError(f"a {type(item).__name__} is no Session, Rejected or LeftOut")
        return msgspec.convert(msgspec.to_builtins(item), type(item))
    except (TypeError, msgspec.ValidationError) as error:
        return Rejected(where=f"item {number} of the importer", reason=str(error))


def _add(writer: StoreWriter, item: Settled) -> Rejected | None:
    """Adds an item to a store; returns the record to reject, if any."""
    match item:
        case Rejected():
            return item
        case LeftOut():
            writer.leave_out(item.action_type)
        case TrimmedText():
            writer.trimmed_texts += 1
        case ChangedValue():
            writer.changed_values[item.change] += 1
        case Session():
            try:
                writer.write(item)
            except BadSession as error:
                location = item.session_id.encode("utf-8", errors="backslashreplace").decode()
                return Rejected(where=location, reason=str(error))
        case _:
            assert_never(item)
    return None
