"""Logs in other shapes -> sessions: the registry of importers.

An importer is a class that splits a source into parts and reads sessions out of a part (`importer.Importer`). It is
named here and imported only when used:

    python -m replay_sessions import NAME SOURCE --out STORE
"""

import importlib

import msgspec

from replay_sessions.errors import BadConfig, did_you_mean
from replay_sessions.importers.importer import Importer

__all__ = ["IMPORTERS", "ImporterEntry", "load_importer"]


class ImporterEntry(msgspec.Struct, frozen=True):
    """Where an importer's class stands, and what it reads in one line."""

    target: str
    summary: str


IMPORTERS: dict[str, ImporterEntry] = {
    "jsonl": ImporterEntry(
        "replay_sessions.importers.mapped.jsonl:JsonlImporter",
        "JSON lines (.jsonl, .jsonl.gz): our own sessions, or another log through a field mapping",
    ),
    "miniwob": ImporterEntry(
        "replay_sessions.importers.mapped.jsonl:MiniwobImporter", "JSON lines of MiniWoB++ human demonstrations"
    ),
    "autowebbench": ImporterEntry(
        "replay_sessions.importers.mapped.jsonl:AutowebbenchImporter",
        "JSON lines of AutoWebBench, pages in <a[ID]| text> notation",
    ),
    "webshop": ImporterEntry(
        "replay_sessions.importers.mapped.jsonl:WebshopImporter",
        "JSON lines of WebShop as ReAct shows it, pages in [name] lines",
    ),
    "opera": ImporterEntry(
        "replay_sessions.importers.opera.importer:OperaImporter",
        "OPeRA, people shopping on Amazon: a local copy of its parquet files, or the hub id NEU-HAI/OPeRA",
    ),
    "shopcart": ImporterEntry(
        "replay_sessions.importers.mapped.shopcart:ShopcartImporter",
        "ShopCART, the corpus behind Shop-R1, or any records whose pages may be shifted by a step",
    ),
    "raw": ImporterEntry(
        "replay_sessions.importers.raw.importer:RawImporter",
        "a shop's own log: a folder of raw HTML pages and a table of what was done on them",
    ),
    "hub": ImporterEntry(
        "replay_sessions.hub.importer:HubImporter",
        "a folder that `export hub` wrote, or a data set of the hub made so",
    ),
}


def load_importer(name: str) -> type[Importer]:
    """The class of a registered importer.

    Raises:
        BadConfig: No importer of that name.
    """
    if name not in IMPORTERS:
        raise BadConfig(f"unknown importer {name!r}. {did_you_mean(name, IMPORTERS)}")
    module, _, attribute = IMPORTERS[name].target.partition(":")
    loaded: type[Importer] = getattr(importlib.import_module(module), attribute)
    return loaded
