"""What an exporter is: it writes the sessions of a store in another form, whole or not at all."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import msgspec

from replay_sessions.store import SessionStore

__all__ = ["Exporter"]


class Exporter(ABC):
    """Writes a store in one form.

    Attributes:
        Options: The exporter's own flags, and what they mean.
        help: What `--help` says beside the summary and the options, such as examples.
    """

    Options: ClassVar[type[msgspec.Struct]]
    help: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_options(cls, store: str, options: Any) -> Self:
        """Makes the exporter from a command's `Options`; `store` is what the user called the store."""

    @abstractmethod
    def export(self, store: SessionStore, on_progress: Callable[[int], None] = lambda _: None) -> list[str]:
        """Writes all sessions of the store.

        Args:
            on_progress: Told how many sessions were written since the last call.

        Returns:
            What was written and how it is read, in lines for the user.
        """
