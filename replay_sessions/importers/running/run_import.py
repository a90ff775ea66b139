"""Runs an importer into a store: in parts, by many processes, going on where a killed import was.

    plan        what is read, by which rules and code; what a killed import of the same plan left is taken up, what one
                of another left is thrown away, and that is told
    parts       each part's shard and record, by any process (engines.py, part_files.py)
    assembly    the records in the order of the parts -> index and manifest -> put in place (store/whole_folder.py)

What cannot be read is set aside and counted. The same source gives the same store, killed or not, whatever the number
of processes. Memory is bounded by the parts in flight, not by the source.
"""

import shutil
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec

from replay_sessions.errors import ImportFailed
from replay_sessions.importers.importer import Importer
from replay_sessions.importers.running.engines import Engine, Job, run_jobs
from replay_sessions.importers.running.part_files import make_folders, read_part, set_aside_path
from replay_sessions.importers.running.worker_processes import WorkerDied
from replay_sessions.splits import SplitPlan
from replay_sessions.store.durable_files import sync_file, writing
from replay_sessions.store.manifest import SHARD_FOLDER, SetAside, Shard
from replay_sessions.store.whole_folder import WorkFolder, check_target
from replay_sessions.store.writer import StoreContents

__all__ = ["run_import"]

_PLAN_FILE = "plan.json"
_PACKAGE = Path(__file__).parents[2]
_PLAN_WORDS = {
    "importer": "the importer",
    "options": "the options",
    "state": "the source",
    "rules": "the field mapping or recipe",
    "longest_session_bytes": "the longest session",
    "splits": "the split",
    "code": "shop-r1 itself",
}


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What an import does; the parts of one are good for another only if all of this is the same.

    Attributes:
        rules: Digest of `Importer.rules`.
        code: Digest of this package, whose version does not tell one checkout from the next.
    """

    importer: str
    options: dict[str, str]
    state: str
    rules: str
    longest_session_bytes: int
    splits: SplitPlan
    code: str


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
        on_progress: Told how much of the source was done since the last call, in units of `Importer.size`.
        tell: Told in a line where what an earlier, killed import had done cannot be used.

    Returns:
        How many parts an earlier, killed import had done.

    Raises:
        ImportFailed: The source is damaged, or not a single session could be read.
        WriteFailed: The system refused; what is done stays for the next attempt.
    """
    splits = splits or SplitPlan()
    advance = on_progress or (lambda _: None)
    check_target(Path(out), overwrite=overwrite)
    with WorkFolder(Path(out), resume=True) as work:
        _take_up(work.path, importer, splits, tell)
        jobs = _Jobs(importer, work.path, splits, advance)
        work.keep = True  # what is done stays for the next attempt, unless the source is found to be at fault
        try:
            for size in run_jobs(iter(jobs), workers=workers, engine=engine):
                advance(size)
            contents, shards = _assemble(work.path, jobs.count)
        except ImportFailed as error:
            work.keep = isinstance(error, WorkerDied)
            raise
        contents.finish(work.store, source=importer.source, plan=splits, options=importer.options, shards=shards)
        work.put_in_place(overwrite=overwrite)
    return jobs.done_before


class _Jobs:
    """The parts still to be done; tells of those that are done already."""

    def __init__(self, importer: Importer, work: Path, plan: SplitPlan, advance: Callable[[int], None]) -> None:
        self.count = 0
        self.done_before = 0
        self._importer = importer
        self._work = work
        self._plan = plan
        self._advance = advance

    def __iter__(self) -> Iterator[Job]:
        for number, part in enumerate(self._importer.parts()):
            self.count = number + 1
            if read_part(self._work, number) is None:
                yield Job(self._importer, part, number, self._work, self._plan)
            else:
                self.done_before += 1
                self._advance(part.size)


def _take_up(work: Path, importer: Importer, splits: SplitPlan, tell: Callable[[str], None]) -> None:
    """Keeps what an import of the same plan left in the work folder, and removes what any other left."""
    plan = _Plan(
        importer=importer.source,
        options=importer.options,
        state=importer.state(),
        rules=_digest(msgspec.json.encode(importer.rules())),
        longest_session_bytes=importer.longest_session_bytes,
        splits=splits,
        code=_code_digest(),
    )
    path = work / _PLAN_FILE
    changed = _changed(path, plan)
    if changed is not None:
        if changed and (work / "parts").exists():
            tell(f"an import that was stopped is not gone on with: {changed} changed since; everything is read anew")
        for folder in ("parts", "store"):
            shutil.rmtree(work / folder, ignore_errors=True)
        with writing(path):
            path.write_bytes(msgspec.json.encode(plan))
            sync_file(path)
    make_folders(work)
    for leftover in (work / "store").iterdir():
        if leftover.name != SHARD_FOLDER:
            leftover.unlink()  # of an import that was killed at its very end


def _changed(path: Path, plan: _Plan) -> str | None:
    """What differs from the plan that a work folder was made for, in words; None if nothing does, "" without a plan."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ""
    try:
        before = msgspec.json.decode(content, type=_Plan)
    except msgspec.DecodeError:  # of another version
        return _PLAN_WORDS["code"]
    changed = [word for field, word in _PLAN_WORDS.items() if getattr(before, field) != getattr(plan, field)]
    return " and ".join(changed) or None


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
        contents.set_aside.add_all(set_aside_path(work, number), record.set_aside)
        contents.left_out_steps.update(record.left_out)
        if record.shard:
            shards.append(record.shard)
        for session in record.sessions:
            session_id = session.row.session_id
            if session_id in contents:
                reason = f"session {session_id!r} is there already: ids must differ"
                contents.set_aside.add(SetAside(where=session_id, reason=reason))
            else:
                contents.add(msgspec.structs.replace(session.row, shard=len(shards) - 1), session.actions)
    if not contents.rows:
        contents.set_aside.close()
        first = contents.set_aside.first
        why = f"{first.where}: {first.reason}" if first else "the source is empty"
        raise ImportFailed(f"no session could be imported: {' '.join(why.split())[:500]}")
    wanted = {work / "store" / shard.file for shard in shards}
    for leftover in (work / "store" / SHARD_FOLDER).iterdir():
        if leftover not in wanted:
            leftover.unlink()  # a killed process's unfinished shard
    return contents, shards
