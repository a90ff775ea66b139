"""The importer `hub`: reads the output of `export hub`, from its folder or from the hub, into a store.

    shop-r1 import hub mine_for_the_hub --split-by official --out STORE
    shop-r1 import hub OWNER/NAME --revision COMMIT --split-by official --out STORE

With `--split-by official`, sessions keep the split of the exported store.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.foundation.errors import BadSession
from replay_sessions.foundation.records import Record
from replay_sessions.importers.hub.download import fetch
from replay_sessions.importers.importer import Importer, Part, Read, find_files, reason_of
from replay_sessions.importers.sources.record_files import ParquetSource
from replay_sessions.schema import Session, Split, Step
from replay_sessions.store.manifest import Rejected
from replay_sessions.store.splits import SPLITS

DATA_FOLDER = "data"

_HELP = """\
  shop-r1 import hub mine_for_the_hub --out STORE
  shop-r1 import hub OWNER/NAME --revision COMMIT --out STORE

With --split-by official sessions keep the split that they were exported in."""


class HubImportOptions(Record):
    """The options of the importer `hub`.

    Attributes:
        revision: The commit, if SOURCE is the id of a data set on the hub.
    """

    revision: str = "main"


class HubImporter(Importer):
    """An importer of an exported data set; see the module."""

    Options = HubImportOptions
    name = "hub"
    help_text = _HELP

    def split(self) -> Iterator[Part]:
        """Yields each file as a part, because its sessions are complete."""
        folder = fetch(self.source, self.options.revision, [f"{DATA_FOLDER}/*.parquet"])
        for path in find_files(folder / DATA_FOLDER, (".parquet",), self.warnings):
            yield Part(path, path.stat().st_size, path)

    def read(self, source: Path, options: HubImportOptions) -> Iterator[Read]:
        split = next((split for split in SPLITS if source.name.startswith(f"{split}-")), None)
        for session_id, rows in groupby(ParquetSource(source).rows(), key=lambda row: row.get("session_id")):
            try:
                yield Read(session_of(list(rows), split))
            except (ValueError, TypeError, KeyError) as error:
                where = f"{source.name}, session {session_id}"
                yield Read(rejected=[Rejected(where=where, reason=reason_of(error))])


def session_of(rows: Sequence[dict[str, Any]], split: Split | None) -> Session:
    """Builds a session from its rows (exporters/hub.py).

    Raises:
        KeyError, TypeError, ValueError: A column is missing or has a wrong value.
    """
    rows = sorted(rows, key=itemgetter("step"))
    if [row["step"] for row in rows] != list(range(len(rows))):
        raise BadSession(f"steps are {[row['step'] for row in rows]}, not 0, 1, 2 ...")
    steps = [
        {name: row[name] for name in Step.__struct_fields__ if name != "action" and name in row}
        | {"action": {"type": row["action_type"]} | {name: row[name] for name in _ACTION if row[name] is not None}}
        for row in rows
    ]
    about = {name: rows[0][name] for name in ("session_id", "user_id", "source", "goal")}
    text, traits = rows[0]["persona"], msgspec.json.decode(rows[0]["persona_traits"] or "{}")
    persona = None if text is None else {"text": text, "traits": traits}
    return msgspec.convert({**about, "persona": persona, "official_split": split, "steps": steps}, Session)


_ACTION = ("name", "text", "submitted", "click_type")
