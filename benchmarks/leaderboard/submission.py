"""A leaderboard becomes a recorded result: only what `verify` makes anew without a difference enters the results.

FOLDER ─► verify (store at hand, N steps asked again) ─► RESULTS/NAME.json, RESULTS/NAME.md

A record goes to other people, so of stores and checkpoints it says what they are called, not where on this machine.
"""

import re
from pathlib import Path

from benchmarks.leaderboard.verify import read_results, verify
from replay_sessions.errors import BadConfig
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file, writing

__all__ = ["submit"]

NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
# Of an absolute path all but its last part; of an address or HTML nothing.
_PLACE = re.compile(rb"(?<![\w.~/<-])/(?:[\w.@+-]+/)+")


def submit(folder: Path, name: str, results: Path, store: SessionStore, *, reask: int = 0) -> dict[str, list[str]]:
    """Verifies a leaderboard and, if nothing is found, records its figures.

    Args:
        folder: The `--out` of a leaderboard run.
        name: Of the record within `results`, such as floors/demo.
        store: The store that it was run on.
        reask: How many steps to ask each agent again.

    Returns:
        What `verify` found; the record is written where that is nothing at all.

    Raises:
        BadConfig: The name leads elsewhere, agents gave no reply at some steps, or there is no finished leaderboard.
    """
    if not NAME.fullmatch(name):
        raise BadConfig(f"a record's name is a path within the results, such as floors/demo; {name!r} is none")
    unranked = [entry.spec.label for entry in read_results(folder).entries if not entry.row.ranked]
    if unranked:
        raise BadConfig(
            f"{', '.join(unranked)} gave no reply at some steps: run the leaderboard again, or leave it out"
        )
    found = verify(folder, store, reask=reask)
    if not any(found.values()):
        record = results / name
        with writing(record):
            record.parent.mkdir(parents=True, exist_ok=True)
        for made, suffix in (("results.json", ".json"), ("leaderboard.md", ".md")):
            replace_file(record.with_name(record.name + suffix), _PLACE.sub(b"", (folder / made).read_bytes()))
    return found
