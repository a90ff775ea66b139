"""Importers, which convert logs of other formats to sessions, and their registry.

An importer is a class that splits a source into parts and reads sessions from a part (`importer.Importer`). IMPORTERS
names it, and it is imported only when it is used:

    shop-r1 import NAME SOURCE --out STORE
"""

from replay_sessions.importers.importer import IMPORTERS, importer_class

__all__ = ["IMPORTERS", "importer_class"]
