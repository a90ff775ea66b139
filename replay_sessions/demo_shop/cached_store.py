"""The store called "demo": sessions of the embedded demo shop, generated on first use and kept in the user's cache.

The folder's name carries a hash of the shop's code, so another version of the shop makes another store.
"""

import os
from hashlib import blake2b
from pathlib import Path

from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.errors import BadConfig
from replay_sessions.schema import SCHEMA_VERSION
from replay_sessions.store.writer import StoreWriter

__all__ = ["DEMO_SEED", "DEMO_SESSIONS", "demo_store_path"]

DEMO_SESSIONS = 8000
DEMO_SEED = 0


def demo_store_path() -> Path:
    """Where the demo store lies; generates it when it is not there yet."""
    path = _cache_folder() / f"demo-{_shop_version()}"
    if not path.is_dir():
        options = {"sessions": str(DEMO_SESSIONS), "seed": str(DEMO_SEED), "page_size": "small"}
        try:
            with StoreWriter(path, source=SOURCE, options=options) as writer:
                for session in generate_sessions(DEMO_SESSIONS, DEMO_SEED):
                    writer.write(session)
        except BadConfig:
            if not path.is_dir():  # else another process was quicker, with the same sessions
                raise
    return path


def _cache_folder() -> Path:
    """$SHOP_R1_CACHE, else the user's cache folder."""
    if folder := os.environ.get("SHOP_R1_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shop_r1"


def _shop_version() -> str:
    digest = blake2b(f"{SCHEMA_VERSION} {DEMO_SESSIONS} {DEMO_SEED}".encode(), digest_size=6)
    for module in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(module.read_bytes())
    return digest.hexdigest()
