"""Logs in other shapes -> sessions: the registry of importers.

An importer is a class that splits a source into parts and reads sessions out of a part (`importer.Importer`). It is
named here and imported only when used:

    python -m replay_sessions import NAME SOURCE --out STORE
"""

from typing import TYPE_CHECKING

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


def importer_class(name: str) -> "type[Importer]":
    """The importer of a name of IMPORTERS; each is imported alone, since their libraries take time to start."""
    match name:
        case "jsonl":
            from replay_sessions.importers.mapped.jsonl import JsonlImporter  # noqa: PLC0415 - start-up time

            return JsonlImporter
        case "miniwob":
            from replay_sessions.importers.mapped.jsonl import MiniwobImporter  # noqa: PLC0415 - start-up time

            return MiniwobImporter
        case "autowebbench":
            from replay_sessions.importers.mapped.jsonl import AutowebbenchImporter  # noqa: PLC0415 - start-up time

            return AutowebbenchImporter
        case "webshop":
            from replay_sessions.importers.mapped.jsonl import WebshopImporter  # noqa: PLC0415 - start-up time

            return WebshopImporter
        case "opera":
            from replay_sessions.importers.opera.importer import OperaImporter  # noqa: PLC0415 - start-up time

            return OperaImporter
        case "shopcart":
            from replay_sessions.importers.mapped.shopcart import ShopcartImporter  # noqa: PLC0415 - start-up time

            return ShopcartImporter
        case "raw":
            from replay_sessions.importers.raw.importer import RawImporter  # noqa: PLC0415 - start-up time

            return RawImporter
        case "rrweb":
            from replay_sessions.importers.rrweb.importer import RrwebImporter  # noqa: PLC0415 - start-up time

            return RrwebImporter
        case "hub":
            from replay_sessions.importers.hub.importer import HubImporter  # noqa: PLC0415 - start-up time

            return HubImporter
    raise AssertionError(f"{name!r} is none of IMPORTERS")
