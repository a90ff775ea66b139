"""ROUGE-L: how much of a logged name or text a prediction has, in order (the F-measure of table 1's similarities).

Equal to `rouge_score` (rougeL, no stemmer) to the last bit, with one departure: a text equal to the target counts as 1
even where it has no token in it. Tokens are runs of a-z and 0-9 after lower-casing, so `rouge_score` gives 0 to a query
in Chinese even against itself.

The longest common subsequence is found with one bit per target token, a whole row of the usual table in three integer
operations (Hyyrö 2004, "Bit-parallel LCS-length computation revisited").
"""

import re
from functools import lru_cache
from typing import Any

from replay_sessions.errors import MissingExtra

__all__ = ["rouge_l", "rouge_l_reference"]

_TOKEN = re.compile(r"[a-z0-9]+")


def rouge_l(prediction: str, target: str) -> float:
    """The ROUGE-L F-measure, in [0, 1]; 1 for equal texts.

    >>> rouge_l("search_results.red_kettle.view_product", "search_results.blue_kettle.view_product")
    0.8333333333333334
    >>> rouge_l("红色水壶", "红色水壶")
    1.0
    """
    if prediction == target:
        return 1.0
    positions, target_length = _token_positions(target)
    tokens = _TOKEN.findall(prediction.lower())
    row = full = (1 << target_length) - 1
    for token in tokens:
        if token in positions:
            matched = row & positions[token]
            row = ((row + matched) | (row - matched)) & full
    common = target_length - row.bit_count()
    if not common:
        return 0.0
    precision, recall = common / len(tokens), common / target_length
    return 2 * precision * recall / (precision + recall)


@lru_cache(maxsize=4096)
def _token_positions(text: str) -> tuple[dict[str, int], int]:
    """For each token the places where it stands, as bits, and the number of tokens."""
    tokens = _TOKEN.findall(text.lower())
    positions: dict[str, int] = {}
    for place, token in enumerate(tokens):
        positions[token] = positions.get(token, 0) | (1 << place)
    return positions, len(tokens)


def rouge_l_reference(prediction: str, target: str) -> float:
    """The same figure by the `rouge_score` package itself, without the departure; several times slower.

    Raises:
        MissingExtra: `rouge_score` is not installed.
    """
    return float(_reference_scorer().score(target, prediction)["rougeL"].fmeasure)


@lru_cache(maxsize=1)
def _reference_scorer() -> Any:
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingExtra(
            "rouge_l_reference needs the package rouge_score: pip install 'shop-r1[reference]'"
        ) from error
    return RougeScorer(["rougeL"], use_stemmer=False)
