"""Stores in the forms of others: the registry of exporters.

An exporter is a class (`exporter.Exporter`) that is named here and imported only when used:

    python -m replay_sessions export NAME STORE --out ...
"""

from replay_sessions.errors import BadConfig, did_you_mean
from replay_sessions.exporters.exporter import Exporter
from replay_sessions.plugins import Entry, load

__all__ = ["EXPORTERS", "load_exporter"]

EXPORTERS: dict[str, Entry] = {
    "minari": Entry(
        "replay_sessions.exporters.minari:MinariExporter",
        "a Minari data set of episodes that replay in ShopR1-v0 and earn the most",
    ),
    "hub": Entry(
        "replay_sessions.hub.exporter:HubExporter",
        "a folder of parquet files and a data set card, ready for the Hugging Face hub",
    ),
}


def load_exporter(name: str) -> type[Exporter]:
    """The class of a registered exporter.

    Raises:
        BadConfig: No exporter of that name.
    """
    if name not in EXPORTERS:
        raise BadConfig(f"unknown exporter {name!r}. {did_you_mean(name, EXPORTERS)}")
    loaded: type[Exporter] = load(EXPORTERS[name].target)
    return loaded
