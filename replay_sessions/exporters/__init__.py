"""Stores in the forms of others: the registry of exporters, and what an exporter is.

shop-r1 export NAME STORE --out ...
"""

from collections.abc import Callable
from typing import ClassVar, Protocol

from replay_sessions.store import SessionStore

__all__ = ["EXPORTERS", "Exporter", "exporter_class"]

EXPORTERS = {
    "minari": "A Minari data set of episodes that replay in ShopR1-v0 and earn the most.",
    "hub": "A folder of parquet files and a data set card, ready for the Hugging Face hub.",
}


class Exporter(Protocol):
    """Writes the sessions of a store in another form, whole or not at all.

    A frozen Struct: its fields are the flags of `export NAME`, its docstring says what they mean.

    Attributes:
        examples: What `--help` says beside the summary and the options.
    """

    examples: ClassVar[str]

    def export(
        self, store: SessionStore, on_progress: Callable[[int], None] = ..., *, store_name: str | None = None
    ) -> list[str]:
        """Writes all sessions of the store.

        Args:
            on_progress: Called with the number of sessions that were written since the last call.
            store_name: What the user called the store; None: its path.

        Returns:
            What was written and how it is read, in lines for the user.
        """


def exporter_class(name: str) -> type[Exporter]:
    """Returns the exporter of a name of EXPORTERS."""
    if name == "minari":
        from replay_sessions.exporters.minari import MinariExporter  # noqa: PLC0415 - gymnasium takes time to start

        return MinariExporter
    from replay_sessions.exporters.hub import HubExporter  # noqa: PLC0415 - start-up time

    return HubExporter
