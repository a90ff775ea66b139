"""Runs an importer into a store: what can be read is kept, what cannot is set aside and counted, and both are told."""

from collections.abc import Callable
from pathlib import Path

from replay_sessions.errors import BadSession, ImportFailed
from replay_sessions.importers.importer import Importer, LeftOut
from replay_sessions.manifest import SetAside
from replay_sessions.splits import SplitPlan
from replay_sessions.writer import StoreWriter

__all__ = ["run_import"]


def run_import(
    importer: Importer,
    out: str | Path,
    *,
    splits: SplitPlan | None = None,
    overwrite: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> None:
    """Writes the importer's sessions to a store.

    Args:
        on_progress: Told how much of the source was read since the last call, in units of `Importer.size`.

    Raises:
        ImportFailed: Not a single session could be read.
    """
    with StoreWriter(
        out, source=importer.source, splits=splits, overwrite=overwrite, options=importer.options
    ) as writer:
        for part in importer.parts():
            for record in importer.read(part):
                if isinstance(record, LeftOut):
                    writer.leave_out(record.action_type)
                elif isinstance(record, SetAside):
                    writer.set_aside(record.where, record.reason)
                else:
                    try:
                        writer.write(record)
                    except BadSession as error:
                        writer.set_aside(record.session_id, str(error))
            if on_progress:
                on_progress(part.size)
        if not writer.rows:
            raise ImportFailed(f"no session could be imported: {_why(writer.first_set_aside)}")


def _why(first: SetAside | None) -> str:
    return f"{first.where}: {first.reason}" if first else "the source is empty"
