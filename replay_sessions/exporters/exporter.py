"""What an exporter is: it writes the sessions of a store in another form, whole or not at all."""

from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Self

from replay_sessions.store import SessionStore

__all__ = ["Exporter"]


class Exporter(ABC):
    """Writes a store in one form."""

    @classmethod
    @abstractmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        """Adds the exporter's own options to its command."""

    @classmethod
    @abstractmethod
    def from_arguments(cls, arguments: Namespace) -> Self:
        """Makes the exporter of a command line."""

    @abstractmethod
    def export(self, store: SessionStore, on_progress: Callable[[int], None] = lambda _: None) -> list[str]:
        """Writes all sessions of the store.

        Args:
            on_progress: Told how many sessions were written since the last call.

        Returns:
            What was written and how it is read, in lines for the user.
        """
