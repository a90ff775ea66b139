"""Stores in the forms of others: the registry of exporters.

An exporter is a class (`exporter.Exporter`) that is named here and imported only when used:

    python -m replay_sessions export NAME STORE --out ...
"""

from replay_sessions.plugins import Entry

__all__ = ["EXPORTERS"]

EXPORTERS: dict[str, Entry] = {
    "minari": Entry(
        "replay_sessions.exporters.minari:MinariExporter",
        "A Minari data set of episodes that replay in ShopR1-v0 and earn the most.",
    ),
    "hub": Entry(
        "replay_sessions.hub.exporter:HubExporter",
        "A folder of parquet files and a data set card, ready for the Hugging Face hub.",
    ),
}
