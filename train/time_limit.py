"""A time limit for Python code that came with a model: a chat template may loop for ever.

It is a trace function, so it works in any thread and costs nothing outside. One long call into C is not interrupted.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from replay_sessions.foundation.errors import BadConfig


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Raises BadConfig where the body runs longer.

    Args:
        what: Runs too long, in the message.
    """
    end = time.monotonic() + seconds

    def trace(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if time.monotonic() > end:
            raise BadConfig(f"{what} runs for over {seconds:g} s: take another model, or give it another template")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
