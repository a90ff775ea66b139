"""Writes a store in another form.

  shop-r1 export minari stores/mine --out datasets
  shop-r1 export hub stores/mine --out mine_for_the_hub

Each exporter has a --help of its own.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

import tyro

from replay_sessions.exporters import EXPORTERS, Exporter, exporter_class
from replay_sessions.foundation.command_line import choose, parse_options
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.records import Record
from replay_sessions.store import SessionStore

OptionsT = TypeVar("OptionsT")


class Export(Record, Generic[OptionsT]):
    """Writes a store by one exporter, whose own options are flags like all others.

    Attributes:
        store: A store's folder, or 'demo'.
    """

    store: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="STORE")]]
    exporter: Annotated[OptionsT, tyro.conf.arg(name="")]


def run(words: Sequence[str]) -> int:
    """Runs `export` with the words after it."""
    program = "shop-r1 export"
    name, rest = choose("exporter", EXPORTERS, words, program=program, text=__doc__)
    kind = exporter_class(name)
    form: Any = Export[kind]  # type: ignore[valid-type]  # the exporter is known only now
    text = f"{EXPORTERS[name]}\n\n{kind.examples}"
    options: Export[Exporter] = parse_options(form, rest, program=f"{program} {name}", text=text)
    store = SessionStore.open(options.store)
    with progress_bar("exporting", len(store)) as advance:
        lines = options.exporter.export(store, advance, store_name=options.store)
    print("\n".join(lines))
    return 0
