"""Logs in other shapes -> sessions: the registry of importers.

An importer is a class that splits a source into parts and reads sessions out of a part (`importer.Importer`). It is
named here and imported only when used:

    python -m replay_sessions import NAME SOURCE --out STORE
"""

from typing import TYPE_CHECKING

from replay_sessions.foundation.plugins import load

if TYPE_CHECKING:
    from replay_sessions.importers.importer import Importer

__all__ = ["IMPORTERS", "importer_class"]

IMPORTERS = {
    "jsonl": "JSON lines (.jsonl, .jsonl.gz): our own sessions, or another log through a field mapping.",
    "miniwob": "JSON lines of MiniWoB++ human demonstrations.",
    "autowebbench": "JSON lines of AutoWebBench, pages in <a[ID]| text> notation.",
    "webshop": "JSON lines of WebShop as ReAct shows it, pages in [name] lines.",
    "opera": "OPeRA, people shopping on Amazon: a local copy of its parquet files, or the hub id NEU-HAI/OPeRA.",
    "shopcart": "ShopCART, the corpus behind Shop-R1, or any records whose pages may be shifted by a step.",
    "raw": "A shop's own log: a folder of raw HTML pages and a table of what was done on them.",
    "rrweb": "Recordings of rrweb 2, also as PostHog and Sentry keep them: the page is rebuilt event by event.",
    "hub": "A folder that `export hub` wrote, or a data set of the hub made so.",
}


_CLASSES = {
    "jsonl": "mapped.jsonl:JsonlImporter",
    "miniwob": "mapped.jsonl:MiniwobImporter",
    "autowebbench": "mapped.jsonl:AutowebbenchImporter",
    "webshop": "mapped.jsonl:WebshopImporter",
    "opera": "opera.importer:OperaImporter",
    "shopcart": "mapped.shopcart:ShopcartImporter",
    "raw": "raw.importer:RawImporter",
    "rrweb": "rrweb.importer:RrwebImporter",
    "hub": "hub.importer:HubImporter",
}


def importer_class(name: str) -> "type[Importer]":
    """The importer of a name of IMPORTERS; each is imported alone, since their libraries take time to start."""
    importer: type[Importer] = load(f"{__name__}.{_CLASSES[name]}")
    return importer
