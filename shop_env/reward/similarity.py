"""The similarity of two texts: ROUGE-L, the F-measure of their longest common subsequence of tokens.

This is the similarity of Shop-R1's table 1. It equals `rouge_score` (rougeL, no stemmer) to the last bit, with one
departure: a text equal to the target gets 1 even if it has no token. Tokens are runs of a-z and 0-9 after lower-casing,
so `rouge_score` gives 0 to a query in Chinese even against itself.

The longest common subsequence is computed with one bit per target token: three integer operations replace a complete
row of the usual table (Hyyrö 2004, "Bit-parallel LCS-length computation revisited").
"""

from functools import lru_cache
from typing import Any, Literal, Protocol

from replay_sessions.foundation.errors import MissingExtra

SimilarityName = Literal["rouge_l", "rouge_score"]


class Similarity(Protocol):
    """A function that returns the similarity of two texts in [0, 1], or 0 if it is below `at_least`."""

    def __call__(self, prediction: str, target: str, at_least: float = 0.0) -> float: ...


def rouge_l(prediction: str, target: str, at_least: float = 0.0) -> float:
    """Computes the ROUGE-L F-measure, in [0, 1]; equal texts have 1, even if both are empty.

    Callers decide whether an empty target counts; the reward ignores it.

    Args:
        at_least: A similarity below this is returned as 0, mostly without computing it.

    >>> rouge_l("search_results.red_kettle.view_product", "search_results.blue_kettle.view_product")
    0.8333333333333334
    >>> rouge_l("红色水壶", "红色水壶")
    1.0
    """
    if prediction == target:
        return 1.0
    masks, target_length = _token_masks(target)
    tokens = _tokens(prediction)
    # The positions of the prediction's tokens in the target, as bits; their number bounds the common subsequence.
    matching = list(filter(None, map(masks.get, tokens)))
    if 2 * len(matching) < (at_least - _MARGIN) * (len(tokens) + target_length) or not matching:
        return 0.0
    row = full = (1 << target_length) - 1
    for mask in matching:
        matched = row & mask
        row = (row + matched) | (row - matched)  # carries beyond the target's bits have no effect
    common = target_length - (row & full).bit_count()
    precision, recall = common / len(tokens), common / target_length
    f_measure = 2 * precision * recall / (precision + recall)
    return f_measure if f_measure >= at_least else 0.0


_MARGIN = 1e-9  # far above the rounding error of F, so that the bound never decides a close case
_TOKEN_BYTES = bytes(ord(chr(byte).lower()) if byte < 128 and chr(byte).isalnum() else 32 for byte in range(256))


def _tokens(text: str) -> list[bytes]:
    """Splits the lower-cased text into runs of a-z and 0-9."""
    if not text.isascii():  # a few non-ASCII letters have ASCII letters in lower case
        text = text.lower()
    return text.encode("ascii", "replace").translate(_TOKEN_BYTES).split()


@lru_cache(maxsize=4096)
def _token_masks(text: str) -> tuple[dict[bytes, int], int]:
    """Returns for each token a bit mask of its positions, and the number of tokens."""
    tokens = _tokens(text)
    masks: dict[bytes, int] = {}
    for index, token in enumerate(tokens):
        masks[token] = masks.get(token, 0) | (1 << index)
    return masks, len(tokens)


def rouge_l_reference(prediction: str, target: str, at_least: float = 0.0) -> float:
    """Computes the F-measure with the package `rouge_score`, many times slower; equal texts without a token have 0.

    Raises:
        MissingExtra: `rouge_score` is not installed.
    """
    f_measure = float(_reference_scorer().score(target, prediction)["rougeL"].fmeasure)
    return f_measure if f_measure >= at_least else 0.0


# The functions by the value of `RewardConfig.similarity`.
SIMILARITIES: dict[SimilarityName, Similarity] = {"rouge_l": rouge_l, "rouge_score": rouge_l_reference}


@lru_cache(maxsize=1)
def _reference_scorer() -> Any:
    try:
        from rouge_score.rouge_scorer import RougeScorer  # noqa: PLC0415 - the extra reference is optional
    except ImportError as error:
        raise MissingExtra(
            "rouge_l_reference needs the package rouge_score: pip install 'shop-r1[reference]'"
        ) from error
    return RougeScorer(["rougeL"], use_stemmer=False)
