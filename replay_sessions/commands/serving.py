"""What the commands that serve pages have in common: they run until a signal ends them, with one line."""

import secrets
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from replay_sessions.errors import BadConfig
from replay_sessions.recorder.journal import Journal
from replay_sessions.stop_signals import Terminated, terminable
from replay_sessions.store.durable_files import replace_file

if TYPE_CHECKING:  # it needs an extra
    from replay_sessions.recorder.serving import Server

__all__ = ["check_port", "kept_token", "recorded", "serve"]

_TOKEN_FILE = ".token"
_SHORTEST_TOKEN = 16


def check_port(port: int) -> None:
    if not 0 <= port < 65536:
        raise BadConfig(f"--port is {port}; it must be 0 to 65535")


def kept_token(folder: Path) -> str:
    """The token of a folder, drawn once: pages that have the snippet go on working when the command is given again."""
    path = folder / _TOKEN_FILE
    if path.is_file():
        token = path.read_text(encoding="ascii", errors="replace").strip()
        if len(token) >= _SHORTEST_TOKEN and token.replace("-", "").replace("_", "").isalnum():
            return token
    token = secrets.token_urlsafe(24)
    replace_file(path, token)
    path.chmod(0o600)
    return token


def recorded(journal: Journal) -> str:
    """What a journal took, in words."""
    count = f"{journal.taken:,} batch{'' if journal.taken == 1 else 'es'} taken"
    return f"{count}, all on the disk in {journal.folder}; the same command goes on"


def serve(server: "Server", greeting: str, last_words: Callable[[], str]) -> int:
    """Serves until a signal ends it; the exit code is that of the signal.

    Args:
        greeting: What is printed once it listens.
        last_words: One line about what was done.
    """
    try:
        with terminable(), server:
            print(greeting, flush=True)
            server.wait()
    except KeyboardInterrupt as stop:
        print(f"stopped: {last_words()}", flush=True)
        return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)
    return 1
