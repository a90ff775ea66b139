"""The sessions of a study: as many of the train split as of the test split, drawn and shuffled.

A fitted baseline learns from the first steps of the train split, which without a draw are those of the first days.
"""

from pathlib import Path

import numpy as np

from replay_sessions.foundation.progress import progress_bar
from replay_sessions.store import SessionStore, StoreWriter


def sample_store(store: SessionStore, out: Path, sessions: int, seed: int) -> SessionStore:
    """A store of at most so many sessions of each of the two splits; one that is there is not drawn again."""
    path = out / f"sample-{store.fingerprint[:8]}-{sessions}-{seed}"
    if not path.exists():
        draw = np.random.default_rng(seed)
        drawn = [draw.permutation(store.session_ids(split))[:sessions] for split in ("train", "test")]
        chosen = np.concatenate(drawn).tolist()
        with (
            progress_bar("drawing sessions", len(chosen), "sessions") as advance,
            StoreWriter(path, source=store.manifest.source, splits=store.manifest.split_plan) as writer,
        ):
            for session_id in chosen:
                writer.write(store.session(session_id))
                advance(1)
    return SessionStore.open(path)
