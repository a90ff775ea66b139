"""Logs in other shapes -> sessions: the registry of importers.

An importer is a class that splits a source into parts and reads sessions out of a part (`importer.Importer`). It is
named in IMPORTERS and imported only when used:

    shop-r1 import NAME SOURCE --out STORE
"""

from replay_sessions.importers.importer import IMPORTERS, importer_class

__all__ = ["IMPORTERS", "importer_class"]
