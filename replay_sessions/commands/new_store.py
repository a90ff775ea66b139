"""What the commands that write a store have in common: where it goes, how it is split, what is printed of it."""

from pathlib import Path

import msgspec

from replay_sessions.store import SessionStore
from replay_sessions.store.audit.findings import LONG_SESSION_STEPS
from replay_sessions.store.manifest import REJECTED_FILE, SplitBy, SplitPlan, format_counts


class NewStore(msgspec.Struct, frozen=True, kw_only=True):
    """A new store.

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


def print_contents(store: SessionStore) -> None:
    """What a store holds, in a few lines."""
    manifest = store.manifest
    steps = f"{manifest.steps:,} steps ({format_counts(manifest.action_counts)})"
    print(f"{store.path}: {manifest.sessions:,} sessions of {manifest.users:,} users, {steps}")
    splits = format_counts(manifest.split_sessions)
    print(f"  split by {manifest.split_plan.by}: {splits} sessions; fingerprint {manifest.fingerprint}")
    if manifest.left_out_steps:
        total, counts = sum(manifest.left_out_steps.values()), format_counts(manifest.left_out_steps)
        print(f"  left out: {total:,} logged events ({counts}); the next step's gap counts them")
    if manifest.rejected:
        print(f"  rejected: {manifest.rejected:,} records, with reasons in {store.path / REJECTED_FILE}")
    longest = max(store.index(), key=lambda row: row.steps)
    if longest.steps > LONG_SESSION_STEPS:
        print(f"  warning: session {longest.session_id!r} has {longest.steps:,} steps: a crawler's?")
    for split, count in manifest.split_sessions.items():
        if not count:
            print(f"  warning: no session is in {split}; with few users, try --split-by session")
