"""Names of files that are no text: neither Arrow nor JSON holds them, so no store can keep them."""

import os
from pathlib import Path

from replay_sessions.errors import BadConfig

__all__ = ["check_name"]


def check_name(path: Path) -> None:
    """Raises BadConfig where a path is not UTF-8, as a name may be that came from another system."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise BadConfig(f"the name '{shown}' is not UTF-8: rename it first") from error
