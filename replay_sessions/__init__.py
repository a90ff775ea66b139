"""Logged shopping sessions at rest: records, stores, importers, the demo shop."""

from pathlib import Path

from replay_sessions.elements import Element, find_elements
from replay_sessions.schema import Action, Click, Persona, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import SplitPlan
from replay_sessions.store.reader import BUILT_IN_STORES

__all__ = [
    "Action",
    "Click",
    "Element",
    "Persona",
    "Session",
    "SessionStore",
    "SplitPlan",
    "Step",
    "StoreWriter",
    "Terminate",
    "TypeAndSubmit",
    "find_elements",
]


def _demo_store() -> Path:
    from replay_sessions.demo_shop.cached_store import demo_store_path  # noqa: PLC0415 - start-up time

    return demo_store_path()


BUILT_IN_STORES["demo"] = _demo_store
