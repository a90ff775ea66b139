"""Writes a store in another form.

  python -m replay_sessions export minari stores/mine --out datasets
  python -m replay_sessions export hub stores/mine --out mine_for_the_hub

Each exporter has a --help of its own.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import tyro

from replay_sessions.commands.command_line import choose, parse_options
from replay_sessions.exporters import EXPORTERS
from replay_sessions.exporters.exporter import Exporter
from replay_sessions.plugins import load_entry, summaries
from replay_sessions.progress_bar import progress_bar
from replay_sessions.store import SessionStore

__all__ = ["Export", "run"]

OptionsT = TypeVar("OptionsT")


class Export(msgspec.Struct, Generic[OptionsT], frozen=True, kw_only=True):
    """Writes a store by one exporter, whose own options are flags like all others.

    Attributes:
        store: A store's folder, or 'demo'.
    """

    store: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="STORE")]]
    exporter: Annotated[OptionsT, tyro.conf.arg(name="")]


def run(words: Sequence[str]) -> int:
    """Runs `export` with what was given after it."""
    program = "python -m replay_sessions export"
    name, rest = choose("exporter", summaries(EXPORTERS), words, program=program, text=__doc__)
    kind: type[Exporter] = load_entry("exporter", EXPORTERS, name)
    form: Any = Export[kind.Options]  # type: ignore[name-defined]  # the exporter is known only now
    text = f"{EXPORTERS[name].summary}\n\n{kind.help}"
    options: Export[Any] = parse_options(form, rest, program=f"{program} {name}", text=text)
    store = SessionStore.open(options.store)
    exporter = kind.from_options(options.store, options.exporter)
    with progress_bar("exporting", len(store)) as advance:
        told = exporter.export(store, advance)
    for line in told:
        print(line)
    return 0
