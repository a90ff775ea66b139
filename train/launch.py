"""How many processes a launcher has started for a run; joining.py makes them its ranks."""

import os

__all__ = ["launched_processes"]


def launched_processes() -> int:
    """One without a launcher; torchrun and accelerate say how many."""
    return int(os.environ.get("WORLD_SIZE", "1"))
