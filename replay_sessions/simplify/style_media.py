"""Media queries: whether style rules apply in a window 1280 pixels wide."""

import functools
import re

__all__ = ["applies", "applies_in"]

_WINDOW_WIDTH = 1280
_CONDITION = re.compile(r"\(\s*([\w-]+)\s*(?::\s*([\w.]+)\s*)?\)")
_LENGTH = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(px|em|rem)?")


@functools.lru_cache(1_000)
def applies_in(opened: str, around: bool | None) -> bool | None:
    """Whether the rules in a block apply, given its beginning; None where the window does not decide it."""
    name, _, condition = opened.rpartition(";")[2].strip().partition(" ")
    if around is False or name not in ("@media", "@supports", "@layer"):
        return False
    applying = applies(condition) if name == "@media" else True
    return around if applying else applying


def applies(media: str) -> bool | None:
    """Whether a list of media queries holds in the window; None where it does not decide it.

    >>> [applies(query) for query in ("screen and (min-width: 48em)", "print, (max-width: 767px)", "(hover: none)")]
    [True, False, None]
    """
    found = [_holds(query.strip().lower()) for query in media.split(",")]
    return True if True in found else None if None in found else False


def _holds(query: str) -> bool | None:
    known: bool | None = True
    for part in re.split(r"\s+and\s+", query):
        condition = _CONDITION.fullmatch(part)
        length = _LENGTH.fullmatch(condition[2] or "") if condition else None
        if part in ("all", "screen", "only screen", "only all"):
            continue
        if part in ("print", "only print", "speech", "tty"):
            return False
        if condition and length and condition[1] in ("min-width", "max-width"):
            pixels = float(length[1]) * (1 if length[2] == "px" else 16)
            if (pixels > _WINDOW_WIDTH) if condition[1] == "min-width" else (pixels < _WINDOW_WIDTH):
                return False
            continue
        known = None
    return known
