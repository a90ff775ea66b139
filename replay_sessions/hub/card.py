"""The card of a data set for the hub: its head is what the hub reads, the rest what a person should know."""

from replay_sessions.hub.rows import COLUMNS, DATA_FOLDER, About
from replay_sessions.store.manifest import Manifest

__all__ = ["card"]


def card(about: About, manifest: Manifest, licence: str) -> str:
    """The README.md of the folder.

    Args:
        licence: The hub's word for it.
    """
    splits = [split for split, sessions in manifest.split_sessions.items() if sessions]
    files = "\n".join(f"  - split: {split}\n    path: {DATA_FOLDER}/{split}-*.parquet" for split in splits)
    counts = ", ".join(f"{manifest.split_sessions[split]:,} {split}" for split in splits)
    mix = ", ".join(f"{count:,} {name}" for name, count in manifest.action_counts.items())
    columns = "\n".join(f"| `{name}` | {kind} | {text} |" for name, (kind, text) in COLUMNS.items())
    left_out = ", ".join(f"{count:,} {name}" for name, count in manifest.left_out_steps.items()) or "none"
    options = ", ".join(f"{name} = {value}" for name, value in manifest.options.items()) or "none"
    return f"""\
---
license: {licence}
pretty_name: {about.name}
tags:
- web-agents
- user-simulation
- shopping
configs:
- config_name: default
  data_files:
{files}
---

# {about.name}: shopping sessions, step by step

{manifest.sessions:,} sessions of {manifest.users:,} users, {manifest.steps:,} steps ({mix}). One row is one step: the
page as simplified HTML, and what the shopper did on it. Steps of a session follow each other.

| column | type | what it holds |
|---|---|---|
{columns}

Sessions by split ({manifest.split_plan.by}): {counts}. Source: {manifest.source} (options: {options}). Events left out,
for they are no click, typing or terminate: {left_out}. Records set aside: {manifest.set_aside:,}.
Fingerprint of the store: `{about.fingerprint}`.

## Before it is shared

- Licence: `{licence}`. Whether the log may be passed on is for its publisher to know; pages belong to their sites.
- Private data: `python -m replay_sessions check STORE` tells what looks like it. Patterns miss some.

## Use

```python
from datasets import load_dataset
rows = load_dataset("OWNER/NAME", split="{splits[0] if splits else "train"}")
```

```sh
python -m replay_sessions import hub FOLDER --split-by official --out STORE    # then gym.make("ShopR1-v0", store=STORE)
```
"""
