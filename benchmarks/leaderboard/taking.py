"""Replies that were kept elsewhere, on another machine say, are taken over: nothing that was paid for is asked again.

    OTHER/…/agents/<label>/replies/<what was asked>.jsonl ─► the same place in FOLDER

A file of replies is named by everything that decides a reply (store, context, seed, code, …), so what does not belong
to a run is never counted in it, wherever it was taken from. Records and figures are made by the next run.
"""

from pathlib import Path

from agents.kept_replies import take_replies
from replay_sessions.errors import BadConfig
from replay_sessions.progress_bar import progress_bar
from replay_sessions.store.locks import working_alone_in

__all__ = ["take"]

PATTERN = "agents/*/replies/*.jsonl"


def take(folder: Path, other: Path) -> int:
    """Takes the replies kept in the leaderboard, or series of leaderboards, `other` over into `folder`.

    Returns:
        How many of its files held something new.

    Raises:
        BadConfig: `other` keeps no reply, or another run is at work in a leaderboard of `folder`.
    """
    sources = sorted(other.rglob(PATTERN))
    if not sources:
        raise BadConfig(f"'{other}' keeps no replies: is it the folder of a leaderboard?")
    new = 0
    with progress_bar("files of replies", len(sources)) as advance:
        for source in sources:
            place = source.relative_to(other)
            with working_alone_in((folder / place).parents[3]):
                new += take_replies(source, folder / place)
            advance(1)
    return new
