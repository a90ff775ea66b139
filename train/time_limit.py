"""A time limit for Python code that comes with a model, such as a chat template that loops for ever.

A trace function implements it, so it works in any thread and costs nothing outside. It cannot interrupt a long call
into C.
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
    """Raises BadConfig if the body runs longer than the limit.

    Args:
        seconds: The limit.
        what: The name of the code, for the message.
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
