"""The exporter `hub`: writes a store as a data set of the Hugging Face hub (parquet files by split, and a card).

    shop-r1 export hub stores/mine --out mine_for_the_hub       writes a local folder, for review
    shop-r1 import hub mine_for_the_hub --split-by official --out stores/again
    hf upload-large-folder OWNER/NAME mine_for_the_hub --repo-type dataset --private

Each row is a step (importers/hub), so that the hub's viewer and `datasets.load_dataset` show the shopper's page and
action. Nothing is uploaded.
"""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.foundation.durable_files import writing
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.importers.hub.importer import DATA_FOLDER
from replay_sessions.schema import Session, action_type
from replay_sessions.store import SessionStore
from replay_sessions.store.manifest import format_counts
from replay_sessions.store.splits import SPLITS
from replay_sessions.store.work_folder import WorkFolder

# Column -> its type and its description.
COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    name: (pa.type_for_alias(alias), text)
    for name, (alias, text) in msgspec.toml.decode((files(__package__) / "hub_columns.toml").read_bytes()).items()
}
ABOUT_FILE = "shop_r1.json"  # identifies a folder of these rows, and names the exported store
_ROW_SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
_FILE_CHARACTERS = 100_000_000


def export_for_hub(store: SessionStore, out: Path, *, overwrite: bool = False, licence: str = "other") -> None:
    """Writes a folder for the hub, completely or not at all.

    Args:
        overwrite: Whether to replace an earlier export.
        licence: The hub's identifier of the data's licence.
    """
    with (
        WorkFolder(out, overwrite=overwrite, marker=ABOUT_FILE) as work,
        writing(out),
        progress_bar("exporting", len(store)) as advance,
    ):
        (work.new / DATA_FOLDER).mkdir()
        for split in SPLITS:
            for number, sessions in enumerate(_group_by_file(store.sessions(split))):
                rows = [row for session in sessions for row in rows_of(session)]
                path = work.new / DATA_FOLDER / f"{split}-{number:05}.parquet"
                pq.write_table(pa.Table.from_pylist(rows, schema=_ROW_SCHEMA), path, compression="zstd")
                advance(len(sessions))
        (work.new / "README.md").write_text(card(store, licence), encoding="utf-8")
        about = {"store": store.path.name, "fingerprint": store.fingerprint}
        (work.new / ABOUT_FILE).write_bytes(msgspec.json.encode(about))
        work.commit()


def rows_of(session: Session) -> Iterator[dict[str, Any]]:
    """Yields the rows of a session in order: one per step, each repeating the session's own fields.

    Only the official split is lost; it becomes the split of the store.
    """
    persona = session.persona
    session_fields = {
        **msgspec.structs.asdict(session),
        "persona": persona and persona.text,
        "persona_traits": persona and msgspec.json.encode(persona.traits).decode(),
    }
    for number, step in enumerate(session.steps):
        action = {**msgspec.structs.asdict(step.action), "action_type": action_type(step.action)}
        values = {**session_fields, "step": number, **msgspec.structs.asdict(step), **action}
        yield {name: values.get(name) for name in COLUMNS}


def _group_by_file(sessions: Iterator[Session]) -> Iterator[list[Session]]:
    """Groups sessions into files."""
    group: list[Session] = []
    characters = 0
    for session in sessions:
        group.append(session)
        characters += session.page_characters
        if characters > _FILE_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def card(store: SessionStore, licence: str) -> str:
    """Returns the README.md of the folder.

    Args:
        licence: The hub's identifier of the data's licence.
    """
    manifest = store.manifest
    splits = [split for split, sessions in manifest.split_sessions.items() if sessions]
    files = "\n".join(f"  - split: {split}\n    path: {DATA_FOLDER}/{split}-*.parquet" for split in splits)
    counts = format_counts({split: manifest.split_sessions[split] for split in splits})
    mix = format_counts(manifest.action_counts)
    columns = "\n".join(f"| `{name}` | {kind} | {text} |" for name, (kind, text) in COLUMNS.items())
    left_out = format_counts(manifest.left_out_steps) or "none"
    options = ", ".join(f"{name} = {value}" for name, value in manifest.options.items()) or "none"
    return f"""\
---
license: {licence}
pretty_name: {store.path.name}
tags:
- web-agents
- user-simulation
- shopping
configs:
- config_name: default
  data_files:
{files}
---

# {store.path.name}: shopping sessions, step by step

{manifest.sessions:,} sessions of {manifest.users:,} users, {manifest.steps:,} steps ({mix}). One row is one step: the
page as simplified HTML, and what the shopper did on it. Steps of a session follow each other.

| column | type | what it holds |
|---|---|---|
{columns}

Sessions by split ({manifest.split_plan.by}): {counts}. Source: {manifest.source} (options: {options}). Events left out
because they are no action of the store: {left_out}. Records rejected: {manifest.rejected:,}.
Fingerprint of the store: `{store.fingerprint}`.

## Before it is shared

- Licence: `{licence}`. Whether the log may be passed on is for its publisher to know; pages belong to their sites.
- Private data: `shop-r1 check STORE` tells what looks like it. Patterns miss some.

## Use

```python
from datasets import load_dataset
rows = load_dataset("OWNER/NAME", split="{splits[0] if splits else "train"}")
```

```sh
shop-r1 import hub FOLDER --split-by official --out STORE    # then gym.make("ShopR1-v0", store=STORE)
```
"""
