"""Evaluations leave their machine: replies of another machine are merged in, verified figures are recorded.

    OTHER/…/agents/<label>/replies/<identity>.jsonl ─► merge ─► the same file in FOLDER, which the next run scores
    FOLDER ─► verify (store at hand, N steps run again) ─► submit ─► RESULTS/NAME.json, RESULTS/NAME.md

A file of replies is named by everything that decides a reply (store, context, seed, code, …), so replies that do not
belong to a run are never counted in it. A record goes to other people, so stores and checkpoints stand in it by their
names, without the folders of this machine.
"""

import re
from pathlib import Path

from benchmarks.leaderboard.verify import verify
from replay_sessions.foundation.durable_files import replace_file, writing
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.locks import working_alone_in
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.store import SessionStore
from shop_env.evaluation.log import LOG_FILE, TABLE_FILES, read_log
from shop_env.evaluation.reply_cache import merge_replies

NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
# Of an absolute path all but its last part; of an address or HTML nothing.
_FOLDERS = re.compile(rb"(?<![\w.~/<-])/(?:[\w.@+-]+/)+")


def merge(folder: Path, other: Path) -> int:
    """Merges the replies of the evaluation `other`, or of a series, into `folder`.

    Returns:
        How many of its files held something new.

    Raises:
        BadConfig: `other` holds no reply, or another run is at work in an evaluation of `folder`.
    """
    sources = sorted(other.rglob("agents/*/replies/*.jsonl"))
    if not sources:
        raise BadConfig(f"'{other}' holds no replies: is it the folder of a leaderboard?")
    new = 0
    with progress_bar("files of replies", len(sources)) as advance:
        for source in sources:
            path = folder / source.relative_to(other)
            with working_alone_in(path.parents[3]):
                new += merge_replies(source, path)
            advance(1)
    return new


def submit(folder: Path, name: str, results: Path, store: SessionStore, *, rerun: int = 0) -> dict[str, list[str]]:
    """Verifies an evaluation and, if there is no mismatch, records its figures.

    Args:
        folder: The `--out` of a leaderboard or a training run.
        name: Of the record within `results`, such as baselines/demo.
        store: The store that it was run on.
        rerun: At how many steps to run each agent again.

    Returns:
        The mismatches; the record is written where there are none.

    Raises:
        BadConfig: The name leads elsewhere, agents gave no reply at some steps, or there is no finished evaluation.
    """
    if not NAME.fullmatch(name):
        raise BadConfig(f"a record's name is a path within the results, such as baselines/demo; {name!r} is none")
    log = read_log(folder)
    if unranked := [entry.label for entry in log.entries if not entry.row.ranked]:
        raise BadConfig(
            f"{', '.join(unranked)} gave no reply at some steps: run the leaderboard again, or leave it out"
        )
    mismatches = verify(folder, store, rerun=rerun)
    if not any(mismatches.values()):
        record = results / name
        with writing(record):
            record.parent.mkdir(parents=True, exist_ok=True)
        for file, suffix in ((LOG_FILE, ".json"), (TABLE_FILES[log.kind], ".md")):
            replace_file(record.with_name(record.name + suffix), _FOLDERS.sub(b"", (folder / file).read_bytes()))
    return mismatches
