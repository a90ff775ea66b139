"""Stores of sessions on disk, written completely or not at all, and read by id, by split or as a stream."""

from replay_sessions.store.reader import SessionStore
from replay_sessions.store.writer import StoreWriter

__all__ = ["SessionStore", "StoreWriter"]
