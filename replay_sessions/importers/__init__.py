"""Logs in other shapes -> sessions: the registry of importers.

An importer is a class that splits a source into parts and reads sessions out of a part (`importer.Importer`). It is
named here and imported only when used:

    python -m replay_sessions import NAME SOURCE --out STORE
"""

from replay_sessions.plugins import Entry

__all__ = ["IMPORTERS"]


IMPORTERS: dict[str, Entry] = {
    "jsonl": Entry(
        "replay_sessions.importers.mapped.jsonl:JsonlImporter",
        "JSON lines (.jsonl, .jsonl.gz): our own sessions, or another log through a field mapping.",
    ),
    "miniwob": Entry(
        "replay_sessions.importers.mapped.jsonl:MiniwobImporter", "JSON lines of MiniWoB++ human demonstrations."
    ),
    "autowebbench": Entry(
        "replay_sessions.importers.mapped.jsonl:AutowebbenchImporter",
        "JSON lines of AutoWebBench, pages in <a[ID]| text> notation.",
    ),
    "webshop": Entry(
        "replay_sessions.importers.mapped.jsonl:WebshopImporter",
        "JSON lines of WebShop as ReAct shows it, pages in [name] lines.",
    ),
    "opera": Entry(
        "replay_sessions.importers.opera.importer:OperaImporter",
        "OPeRA, people shopping on Amazon: a local copy of its parquet files, or the hub id NEU-HAI/OPeRA.",
    ),
    "shopcart": Entry(
        "replay_sessions.importers.mapped.shopcart:ShopcartImporter",
        "ShopCART, the corpus behind Shop-R1, or any records whose pages may be shifted by a step.",
    ),
    "raw": Entry(
        "replay_sessions.importers.raw.importer:RawImporter",
        "A shop's own log: a folder of raw HTML pages and a table of what was done on them.",
    ),
    "rrweb": Entry(
        "replay_sessions.importers.rrweb.importer:RrwebImporter",
        "Recordings of rrweb 2, also as PostHog and Sentry keep them: the page is rebuilt event by event.",
    ),
    "hub": Entry(
        "replay_sessions.hub.importer:HubImporter",
        "A folder that `export hub` wrote, or a data set of the hub made so.",
    ),
}
