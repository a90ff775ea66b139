"""Writes a store in another form.

shop-r1 export hub stores/mine --out mine_for_the_hub
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from replay_sessions.exporters import EXPORTERS
from replay_sessions.foundation.command_line import choose, parse_options
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.records import Record
from replay_sessions.store import SessionStore


class HubExport(Record):
    """Writes a folder of parquet files and a data set card, ready for the Hugging Face hub.

      shop-r1 export hub stores/mine --out mine_for_the_hub
      shop-r1 import hub mine_for_the_hub --out stores/again
      hf upload-large-folder OWNER/NAME mine_for_the_hub --repo-type dataset \\
        --private

    Attributes:
        store: A store's folder, or 'demo'.
        out: The folder that is written.
        overwrite: Replace an earlier export that is there.
        licence: The hub's word for the data's licence, such as cc-by-4.0; other leaves it to be stated.
    """

    store: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="STORE")]]
    out: Path
    overwrite: bool = False
    licence: str = "other"


def run(words: Sequence[str]) -> int:
    """Runs `export` with the words after it."""
    program = "shop-r1 export"
    name, rest = choose("exporter", EXPORTERS, words, program=program, text=__doc__)
    options = parse_options(HubExport, rest, program=f"{program} {name}")
    from replay_sessions.exporters.hub import export_for_hub  # noqa: PLC0415 - start-up time

    store = SessionStore.open(options.store)
    with progress_bar("exporting", len(store)) as advance:
        export_for_hub(store, options.out, overwrite=options.overwrite, licence=options.licence, on_progress=advance)
    print(
        f"{options.out}: {len(store):,} sessions, {store.manifest.steps:,} rows; read its README.md before sharing it"
    )
    print(f"  shop-r1 import hub {options.out} --split-by official --out STORE")
    return 0
