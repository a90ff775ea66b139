"""Runs an importer into a store: in parts, by many processes, going on where a killed import was.

    plan        what is read, by which rules and code; what a killed import of the same plan left is taken up, what one
                of another left is thrown away, and the user reads why
    parts       each part's shard and record, by any process (engines.py)
    assembly    the records in the order of the parts -> index and manifest -> target (store/work_folder.py)

What cannot be read is rejected and counted. The same source gives the same store, killed or not, whatever the number
of processes. Memory is bounded by the parts in flight, not by the source.
"""

import shutil
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.foundation.durable_files import sync_file, writing
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import Importer
from replay_sessions.importers.running.engines import (
    Engine,
    Job,
    WorkerDied,
    make_folders,
    read_part,
    rejections_path,
    run_jobs,
)
from replay_sessions.store.manifest import SHARD_FOLDER, Rejected, Shard, SplitPlan
from replay_sessions.store.work_folder import WorkFolder, check_target
from replay_sessions.store.writer import StoreContents

_PLAN_FILE = "plan.json"
_PACKAGE = Path(__file__).parents[2]


def run_import(
    importer: Importer,
    out: str | Path,
    *,
    splits: SplitPlan | None = None,
    overwrite: bool = False,
    workers: int | None = 1,
    engine: Engine = "processes",
    on_progress: Callable[[int], None] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> int:
    """Writes the importer's sessions to a store.

    Args:
        workers: Processes that read parts; a source of a single part is read in this one, which others may help. None:
            one for each core, for a source that takes longer than to start them.
        engine: "ray" spreads the parts over a Ray cluster whose machines share the folder of `out`.
        on_progress: Called with how much of the source was done since the last call, in units of `Importer.size`.
        tell: Called with a line for the user where what an earlier, killed import had done cannot be used.

    Returns:
        How many parts an earlier, killed import had done.

    Raises:
        ImportFailed: The source is damaged, or not a single session could be read.
        WriteFailed: The system refused; what is done stays for the next attempt.
    """
    splits = splits or SplitPlan()
    advance = on_progress or (lambda _: None)
    check_target(Path(out), overwrite=overwrite)
    done_before = count = 0
    with WorkFolder(Path(out), resume=True) as work:
        _resume(work.path, importer, splits, tell)

        def jobs() -> Iterator[Job]:
            """The parts that are still to be done."""
            nonlocal count, done_before
            for number, part in enumerate(importer.parts()):
                count += 1
                if read_part(work.path, number) is None:
                    yield Job(importer, part, number, work.path, splits)
                else:
                    done_before += 1
                    advance(part.size)

        work.keep = True  # what is done stays for the next attempt, unless the source is at fault
        try:
            for size in run_jobs(jobs(), workers=workers, engine=engine):
                advance(size)
            contents, shards = _assemble(work.path, count)
        except ImportFailed as error:
            work.keep = isinstance(error, WorkerDied)
            raise
        contents.finish(source=importer.source, plan=splits, options=importer.options, shards=shards)
        work.commit(overwrite=overwrite)
    return done_before


def _resume(work: Path, importer: Importer, splits: SplitPlan, tell: Callable[[str], None]) -> None:
    """Keeps what an import of the same plan left in the work folder, and removes what any other left."""
    # The parts of one import are good for another only if all of this is the same.
    plan = {
        "the importer": importer.source,
        "the options": importer.options,
        "the source": importer.state(),
        "the field mapping or recipe": _digest(msgspec.json.encode(importer.rules)),
        "the longest session": importer.longest_session_bytes,
        "the split": msgspec.to_builtins(splits),
        "shop-r1 itself": _code_digest(),  # the version does not separate one checkout from the next
    }
    path = work / _PLAN_FILE
    try:
        former: dict[str, Any] | None = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        former = None
    except msgspec.DecodeError:
        former = {}
    if former != plan:
        if former is not None and (work / "parts").exists():
            changed = [name for name, value in plan.items() if former.get(name) != value]
            if former.keys() != plan.keys():  # of another version
                changed = ["shop-r1 itself"]
            tell(
                f"an import that was stopped is not gone on with: {' and '.join(changed)} changed since; everything is "
                "read anew"
            )
        for folder in ("parts", "store"):
            shutil.rmtree(work / folder, ignore_errors=True)
        with writing(path):
            path.write_bytes(msgspec.json.encode(plan))
            sync_file(path)
    make_folders(work)
    for leftover in (work / "store").iterdir():
        if leftover.name != SHARD_FOLDER:
            leftover.unlink()  # of an import that was killed at its very end


def _code_digest() -> str:
    """Of everything in this package that may decide what a session becomes: its modules, mappings and recipes."""
    files = sorted(path for kind in ("*.py", "*.toml") for path in _PACKAGE.rglob(kind))
    return _digest(b"".join(path.read_bytes() for path in files))


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _assemble(work: Path, count: int) -> tuple[StoreContents, list[Shard]]:
    """The parts' records as one store's contents, and the shards it needs; of two sessions with one id the first."""
    contents = StoreContents(work / "store")
    shards: list[Shard] = []
    for number in range(count):
        record = read_part(work, number)
        if record is None:
            raise WorkerDied(f"part {number} of the import is gone from '{work}': run the same command again")
        contents.rejected.add_all(rejections_path(work, number))
        contents.left_out_steps.update(record.left_out)
        if record.shard:
            shards.append(record.shard)
        for session in record.sessions:
            session_id = session.row.session_id
            if session_id in contents.rows:
                reason = f"session {session_id!r} is there already: ids must differ"
                contents.rejected.add(Rejected(where=session_id, reason=reason))
            else:
                contents.add(msgspec.structs.replace(session.row, shard=len(shards) - 1), session.actions)
    if not contents.rows:
        reason = "the source is empty"
        if contents.rejected.count:
            with contents.rejected.path.open("rb") as file:
                first = msgspec.json.decode(file.readline(), type=Rejected)
            reason = f"{first.where}: {first.reason}"
        raise ImportFailed(f"no session could be imported: {' '.join(reason.split())[:500]}")
    finished = {work / "store" / shard.file for shard in shards}
    for leftover in (work / "store" / SHARD_FOLDER).iterdir():
        if leftover not in finished:
            leftover.unlink()  # a killed process's unfinished shard
    return contents, shards
