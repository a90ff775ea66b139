"""The store called "demo": sessions of the embedded demo shop, generated on first use and kept in the user's cache.

The folder's name carries a hash of the shop's code and phrases, so another version of the shop makes another store.
"""

from hashlib import blake2b
from pathlib import Path

from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.demo_shop.pages import PageSize
from replay_sessions.foundation.durable_files import cache_folder
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.schema import SCHEMA_VERSION
from replay_sessions.store.writer import StoreWriter

DEMO_SESSIONS = 8000
DEMO_SEED = 0


def demo_store_path() -> Path:
    """Where the demo store lies; generates it when it is not there yet."""
    path = cache_folder() / f"demo-{_shop_version()}"
    if not path.is_dir():
        try:
            write_demo_store(path, DEMO_SESSIONS, DEMO_SEED)
        except BadConfig:
            if not path.is_dir():  # else another process was quicker, with the same sessions
                raise
    return path


def write_demo_store(path: Path, sessions: int, seed: int, page_size: PageSize = "small") -> None:
    """Generates a store of the demo shop."""
    options = {"sessions": str(sessions), "seed": str(seed), "page_size": page_size}
    with (
        StoreWriter(path, source=SOURCE, options=options) as writer,
        progress_bar(f"demo shop {seed}", sessions) as advance,
    ):
        for session in generate_sessions(sessions, seed, page_size):
            writer.write(session)
            advance(1)


def _shop_version() -> str:
    digest = blake2b(f"{SCHEMA_VERSION} {DEMO_SESSIONS} {DEMO_SEED}".encode(), digest_size=6)
    for path in sorted(Path(__file__).parent.glob("*.*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
