"""Writes a store in another form.

Examples:
  shop-r1 export hub stores/mine --out mine_for_the_hub
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from replay_sessions.exporters import EXPORTERS
from replay_sessions.foundation.command_line import choose, parse_options
from replay_sessions.foundation.records import Record
from replay_sessions.store import SessionStore
from replay_sessions.store.audit.typed_texts import describe_rare, find_rare_in


class HubExport(Record):
    """Writes a folder of parquet files and a data set card, ready for the Hugging Face hub.

      shop-r1 export hub stores/mine --out mine_for_the_hub
      shop-r1 import hub mine_for_the_hub --out stores/again
      hf upload-large-folder OWNER/NAME mine_for_the_hub --repo-type dataset \\
        --private

    Attributes:
        store: A store's folder, or 'demo'.
        out: The folder to write.
        overwrite: Replace an earlier export.
        licence: The hub's identifier of the data's licence, such as cc-by-4.0; "other" leaves it open.
    """

    store: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="STORE")]]
    out: Path
    overwrite: bool = False
    licence: str = "other"


def run(argv: Sequence[str]) -> int:
    """Runs `export` with the arguments after it."""
    program = "shop-r1 export"
    name, arguments = choose("exporter", EXPORTERS, argv, program=program, text=__doc__)
    options = parse_options(HubExport, arguments, program=f"{program} {name}")
    store, out = SessionStore.open(options.store), options.out
    from replay_sessions.exporters.hub import export_for_hub  # noqa: PLC0415 - start-up time

    export_for_hub(store, out, overwrite=options.overwrite, licence=options.licence)
    print(f"{out}: {len(store):,} sessions, {store.manifest.steps:,} rows; read its README.md before sharing it")
    print(f"  shop-r1 import hub {out} --split-by official --out STORE")
    typed = find_rare_in(store)
    print(f"typed texts: {describe_rare(len(typed.rare), len(typed.every))}")
    return 0
