"""Describes a store in a few lines, after its creation and at the head of `show`."""

from replay_sessions.foundation.table import print_results
from replay_sessions.store import SessionStore
from replay_sessions.store.manifest import REJECTED_FILE, format_counts


def print_contents(store: SessionStore) -> None:
    """Prints the content of a store in a few lines."""
    manifest = store.manifest
    steps = f"{manifest.steps:,} steps ({format_counts(manifest.action_counts)})"
    print_results(f"{store.path}: {manifest.sessions:,} sessions of {manifest.users:,} users, {steps}")
    options = "".join(f", {name} {value}" for name, value in manifest.options.items())
    print_results(f"  source: {manifest.source}{options}")
    splits = format_counts(manifest.split_sessions)
    print_results(f"  split by {manifest.split_plan.by}: {splits} sessions; fingerprint {manifest.fingerprint}")
    if manifest.left_out_steps:
        total, counts = sum(manifest.left_out_steps.values()), format_counts(manifest.left_out_steps)
        print_results(
            f"  left out: {total:,} logged events ({counts}); a step's gap counts those before it, duplicates aside"
        )
    if manifest.trimmed_texts:
        print_results(f"  changed: {manifest.trimmed_texts:,} typed texts lost the blanks at their ends")
    for change, count in manifest.changed_values.items():
        print_results(f"  changed: {count:,} × {change}")
    for run in manifest.rationales:
        print_results(f"  rationales in {', '.join(run.splits)}: written by {run.model}, by {run.by}")
    if manifest.rejected:
        print_results(f"  rejected: {manifest.rejected:,} records, with reasons in {store.path / REJECTED_FILE}")
    for split, count in manifest.split_sessions.items():
        if not count:
            print_results(f"  warning: no session is in {split}; {_advise(split, manifest.split_plan.by)}")


def _advise(split: str, split_by: str) -> str:
    """Returns what to do about an empty split."""
    if split_by == "session":
        return "there are too few sessions"
    if split_by != "official":
        return "with few users, try --split-by session"
    if split == "validation":
        return "the publisher's split has none: a training keeps its last weights; for one, try --split-by user"
    return "the publisher's split has none: try --split-by user"
