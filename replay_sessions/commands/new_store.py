"""What the commands that make a store have in common: where it goes, how it is split, what is told of it."""

from pathlib import Path

import msgspec

from replay_sessions.splits import SplitBy, SplitPlan
from replay_sessions.store import SessionStore
from replay_sessions.store.manifest import SET_ASIDE_FILE

__all__ = ["NewStore", "tell_contents"]


class NewStore(msgspec.Struct, frozen=True, kw_only=True):
    """A store that is to be made.

    Attributes:
        out: The folder that becomes the store.
        overwrite: Replace the store that is there.
        split_by: What stays on one side of train, validation and test; official: as the publisher split.
        validation: The share for validation.
        test: The share for test.
    """

    out: Path
    overwrite: bool = False
    split_by: SplitBy = "user"
    validation: float = 0.1
    test: float = 0.2

    @property
    def splits(self) -> SplitPlan:
        return SplitPlan(by=self.split_by, validation=self.validation, test=self.test)


def tell_contents(store: SessionStore) -> None:
    """What came into a store, in a few lines."""
    manifest = store.manifest
    mix = ", ".join(f"{count:,} {name}" for name, count in manifest.action_counts.items())
    splits = ", ".join(f"{count:,} {split}" for split, count in manifest.split_sessions.items())
    lines = [
        f"{store.path}: {manifest.sessions:,} sessions of {manifest.users:,} users, {manifest.steps:,} steps ({mix})"
    ]
    lines.append(f"  split by {manifest.split_plan.by}: {splits} sessions; fingerprint {manifest.fingerprint}")
    if manifest.left_out_steps:
        counts = ", ".join(f"{count:,} {name}" for name, count in manifest.left_out_steps.items())
        total = sum(manifest.left_out_steps.values())
        lines.append(f"  left out: {total:,} logged events ({counts}); the next step's gap counts them")
    if manifest.set_aside:
        lines.append(f"  set aside: {manifest.set_aside:,} records, with reasons in {store.path / SET_ASIDE_FILE}")
    for split, count in manifest.split_sessions.items():
        if not count:
            lines.append(f"  warning: no session is in {split}; with few users, try --split-by session")
    for line in lines:
        print(line)
