"""The similarity of two texts: ROUGE-L, the F-measure of their longest common subsequence of words.

This is the similarity of Shop-R1's table 1, in any script. On ASCII texts it equals `rouge_score` (rougeL, no stemmer)
to the last bit, except that equal texts always have 1. `rouge_score` itself keeps a-z and 0-9 alone: to it all products
of a Japanese shop are equal, and no Chinese query is equal to itself.

A word is a run of letters, marks and digits; in a script that writes no blanks (Chinese, Japanese, Thai, Lao, Khmer,
Burmese …) it is a single letter with its marks. Case, composition (NFC, NFD) and the width of letters and digits make
no difference (NFKC, case folding), nor do characters without a shape, such as joiners and soft hyphens. Vowel marks do.

The longest common subsequence is computed with one bit per target word: three integer operations replace a complete
row of the usual table (Hyyrö 2004, "Bit-parallel LCS-length computation revisited").
"""

import re
import unicodedata
from functools import lru_cache
from typing import Any, Literal, Protocol

from replay_sessions.foundation.errors import MissingExtra

SimilarityName = Literal["rouge_l", "rouge_score"]
ROUNDING = 1e-9  # far above the rounding error of F, far below the distance of two values of F


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
    >>> rouge_l("红色茶壶", "红色水壶")
    0.75
    """
    if prediction == target:
        return 1.0
    masks, target_length = _word_masks(target)
    words = _words(prediction)
    # The positions of the prediction's words in the target, as bits; their number bounds the common subsequence.
    matching = list(filter(None, map(masks.get, words)))
    if 2 * len(matching) < (at_least - ROUNDING) * (len(words) + target_length) or not matching:
        return 0.0
    row = full = (1 << target_length) - 1
    for mask in matching:
        matched = row & mask
        row = (row + matched) | (row - matched)  # carries beyond the target's bits have no effect
    common = target_length - (row & full).bit_count()
    precision, recall = common / len(words), common / target_length
    f_measure = 2 * precision * recall / (precision + recall)
    return f_measure if f_measure >= at_least else 0.0


_WORD_BYTES = bytes(ord(chr(byte).lower()) if byte < 128 and chr(byte).isalnum() else 32 for byte in range(256))
_TRADEMARKS = dict.fromkeys(map(ord, "™℠"), " ")  # NFKC would add the letters TM to the word before
_WITHOUT_SHAPE = {  # joiners, soft hyphens, marks of direction, variation selectors; not the zero-width space
    code: None
    for first, last in (
        (0xAD, 0xAD),
        (0x34F, 0x34F),
        (0x61C, 0x61C),
        (0x180B, 0x180F),
        (0x200C, 0x200F),
        (0x202A, 0x202E),
        (0x2060, 0x206F),
        (0xFE00, 0xFE0F),
        (0xFEFF, 0xFEFF),
        (0xE0100, 0xE01EF),
    )
    for code in range(first, last + 1)
}
_REPLACED = {**_TRADEMARKS, **_WITHOUT_SHAPE}
_WITHOUT_BLANKS = (  # blocks of scripts that write no blanks between words
    (0xE00, 0xEFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x1B00, 0x1B7F),  # Balinese
    (0x3000, 0x312F),  # signs of Han, Hiragana, Katakana, Bopomofo
    (0x31A0, 0x31FF),  # Bopomofo, Katakana
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0xA4CF),  # Han, Yi
    (0xA980, 0xA9FF),  # Javanese, Myanmar
    (0xAA60, 0xAADF),  # Myanmar, Tai Viet
    (0xF900, 0xFAFF),  # Han
    (0x1AFF0, 0x1B16F),  # Kana
    (0x20000, 0x3FFFF),  # Han
)


class _Kinds(dict[int, str]):
    """Maps a code point to its kind: letter or digit (a), mark (m), letter of a script without blanks (c), or other."""

    def __missing__(self, code: int) -> str:
        kind = {"L": "a", "N": "a", "M": "m"}.get(unicodedata.category(chr(code))[0], " ")
        if kind == "a" and any(first <= code <= last for first, last in _WITHOUT_BLANKS):
            kind = "c"
        self[code] = kind
        return kind


_KINDS = _Kinds()
_WORD = re.compile("cm*|[am]+")


def _words(text: str) -> list[bytes]:
    """Splits a text into words, with case folded, in UTF-8."""
    if text.isascii():
        return text.encode().translate(_WORD_BYTES).split()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text.translate(_REPLACED)).casefold())
    return [text[slice(*match.span())].encode() for match in _WORD.finditer(text.translate(_KINDS))]


@lru_cache(maxsize=4096)
def _word_masks(text: str) -> tuple[dict[bytes, int], int]:
    """Returns for each word a bit mask of its positions, and the number of words."""
    words = _words(text)
    masks: dict[bytes, int] = {}
    for index, word in enumerate(words):
        masks[word] = masks.get(word, 0) | (1 << index)
    return masks, len(words)


def rouge_l_reference(prediction: str, target: str, at_least: float = 0.0) -> float:
    """Computes the F-measure with the package `rouge_score`: many times slower, and blind to all but a-z and 0-9.

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
