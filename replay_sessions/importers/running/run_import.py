"""Runs an importer into a store: in parts, by many processes.

    parts       each part's shard and record, by any process (engines.py)
    assembly    the records in the order of the parts -> index and manifest -> target (store/writer.py)

What cannot be read is rejected and counted. The same source gives the same store, whatever the number of processes.
Memory is bounded by the parts in flight, not by the source. An import that is stopped leaves nothing.
"""

from collections.abc import Callable
from pathlib import Path

from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import Importer
from replay_sessions.importers.running.engines import Engine, Job, PartRecord, run_jobs
from replay_sessions.store.manifest import SplitPlan
from replay_sessions.store.writer import StoreWriter


def run_import(
    importer: Importer,
    out: str | Path,
    *,
    splits: SplitPlan | None = None,
    overwrite: bool = False,
    workers: int | None = 1,
    engine: Engine = "processes",
    on_progress: Callable[[int], None] | None = None,
) -> None:
    """Writes the importer's sessions to a store.

    Args:
        workers: Processes that read parts; a source of a single part is read in this one, which others may help. None:
            one for each core, for a source that takes longer than to start them.
        engine: "ray" spreads the parts over a Ray cluster whose machines share the folder of `out`.
        on_progress: Called with how much of the source was done since the last call, in units of `Importer.size`.

    Raises:
        ImportFailed: The source is damaged, or not a single session could be read.
        WriteFailed: The system refused.
    """
    splits = splits or SplitPlan()
    advance = on_progress or (lambda _: None)
    records: list[PartRecord] = []
    options = importer.options
    with StoreWriter(out, source=importer.source, splits=splits, overwrite=overwrite, options=options) as writer:
        parts = enumerate(importer.parts())
        jobs = (Job(importer, part, number, writer.shard_folder, splits) for number, part in parts)
        for record in run_jobs(jobs, workers=workers, engine=engine):
            records.append(record)
            advance(record.size)
        for record in sorted(records, key=lambda record: record.number):
            _add(writer, record)
        if not writer.session_count:
            reasons = (f"{rejected.where}: {rejected.reason}" for record in records for rejected in record.rejected)
            reason = next(reasons, "the source is empty")
            raise ImportFailed(f"no session could be imported: {' '.join(reason.split())[:500]}")


def _add(writer: StoreWriter, record: PartRecord) -> None:
    """Adds the outcome of a part to the store."""
    for rejected in record.rejected:
        writer.reject(rejected.where, rejected.reason)
    for action_type, count in record.left_out.items():
        writer.leave_out(action_type, count)
    if record.shard is not None:
        writer.add_shard(record.shard)
