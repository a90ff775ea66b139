"""Damaged inputs for hypothesis: valid ones, cut, repeated, spliced and sprinkled with what readers stumble over."""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T", str, bytes)


@st.composite
def damaged(draw: st.DrawFn, valid: Sequence[T], pieces: st.SearchStrategy[T], most: int = 100_000) -> T:
    """Draws one of the valid inputs with one to six edits, of at most `most` characters or bytes.

    Args:
        valid: Inputs that can be read.
        pieces: What an edit may put in.
    """
    text = draw(st.sampled_from(valid))
    for _ in range(draw(st.integers(1, 6))):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        other = draw(st.sampled_from(valid))
        piece = draw(pieces)
        piece *= draw(st.sampled_from((1, 1, 3, 200))) if len(piece) < 20 else 1
        edits = (
            text[:start] + piece + text[start:],
            text[:start] + piece + text[end:],
            text[:end] + text[start : start + 100] * draw(st.sampled_from((1, 30))) + text[end:],
            text[:start] + other[draw(st.integers(0, len(other))) :],
            text[start:end],
            text.swapcase(),
        )
        text = draw(st.sampled_from(edits))[:most]
    return text
