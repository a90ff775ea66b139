"""The script that a shop's pages load: rrweb's recorder, then ours beside it.

rrweb's record ─► recorder.js (ids, masks, queue, sending) ─► questions.js (consent, why, persona)
"""

from importlib.resources import files

from replay_sessions.recorder.rrweb_bundle import fetched_recorder

__all__ = ["recorder_script"]

_OURS = ("recorder.js", "questions.js")


def recorder_script() -> bytes:
    """All of it; see `rrweb_bundle` for what it raises."""
    ours = [files("replay_sessions.recorder.snippet").joinpath(name).read_bytes() for name in _OURS]
    return b"\n;\n".join([fetched_recorder(), *ours])
