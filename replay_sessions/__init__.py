"""Logged shopping sessions at rest: records, stores, importers, the demo shop."""

from replay_sessions.elements import Element, find_elements
from replay_sessions.schema import Action, Click, Persona, Scroll, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.splits import SplitPlan

__all__ = [
    "Action",
    "Click",
    "Element",
    "Persona",
    "Scroll",
    "Session",
    "SessionStore",
    "SplitPlan",
    "Step",
    "StoreWriter",
    "Terminate",
    "TypeAndSubmit",
    "find_elements",
]
