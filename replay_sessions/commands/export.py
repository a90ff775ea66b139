"""Writes a store in another form.

Examples:
  shop-r1 export hub stores/mine --out mine_for_the_hub
  shop-r1 export minari stores/mine --out datasets
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from replay_sessions.exporters import EXPORTERS
from replay_sessions.foundation.command_line import choose, parse_options
from replay_sessions.foundation.records import Record
from replay_sessions.schema import Split
from replay_sessions.store import SessionStore
from replay_sessions.store.audit.typed_texts import describe_rare, find_rare_in


class _Export(Record):
    """The options that all exporters share.

    Attributes:
        store: A store's folder, or 'demo'.
        out: The folder to write.
        overwrite: Replace an earlier export.
    """

    store: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="STORE")]]
    out: Path
    overwrite: bool = False


class HubExport(_Export):
    """Writes a folder of parquet files and a data set card, ready for the Hugging Face hub.

      shop-r1 export hub stores/mine --out mine_for_the_hub
      shop-r1 import hub mine_for_the_hub --out stores/again
      hf upload-large-folder OWNER/NAME mine_for_the_hub --repo-type dataset \\
        --private

    Attributes:
        licence: The hub's identifier of the data's licence, such as cc-by-4.0; "other" leaves it open.
    """

    licence: str = "other"


class MinariExport(_Export):
    """Writes a folder with a Minari data set of episodes that replay in ShopR1-v0 and earn the most.

      shop-r1 export minari stores/mine --out datasets
      MINARI_DATASETS_PATH=datasets python -c \\
        "import minari; print(minari.load_dataset('shopr1/mine/human-v0'))"

    Attributes:
        split: The split to write.
    """

    split: Split | Literal["all"] = "all"


def run(words: Sequence[str]) -> int:
    """Runs `export` with the words after it."""
    program = "shop-r1 export"
    name, arguments = choose("exporter", EXPORTERS, words, program=program, text=__doc__)
    option_classes: dict[str, Any] = {"hub": HubExport, "minari": MinariExport}
    options: HubExport | MinariExport = parse_options(option_classes[name], arguments, program=f"{program} {name}")
    store, out, overwrite = SessionStore.open(options.store), options.out, options.overwrite
    if isinstance(options, HubExport):
        from replay_sessions.exporters.hub import export_for_hub  # noqa: PLC0415 - start-up time

        export_for_hub(store, out, overwrite=overwrite, licence=options.licence)
        print(f"{out}: {len(store):,} sessions, {store.manifest.steps:,} rows; read its README.md before sharing it")
        print(f"  shop-r1 import hub {out} --split-by official --out STORE")
    else:
        from replay_sessions.exporters.minari import export_for_minari  # noqa: PLC0415 - the same

        name = export_for_minari(store, out, store_name=options.store, split=options.split, overwrite=overwrite)
        print(f"{out}: the data set {name}\n  MINARI_DATASETS_PATH={out} minari show {name}")
    typed = find_rare_in(store)
    print(f"typed texts: {describe_rare(len(typed.rare), len(typed.every))}")
    return 0
