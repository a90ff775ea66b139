"""How alike a reply's action is to the logged one: ROUGE-L of texts, and exact matches.

ROUGE-L is how much of a logged name or text a prediction has, in order (the F-measure of table 1's similarities). It is
equal to `rouge_score` (rougeL, no stemmer) to the last bit, with one departure: a text equal to the target counts as 1
even where it has no token in it. Tokens are runs of a-z and 0-9 after lower-casing, so `rouge_score` gives 0 to a query
in Chinese even against itself.

The longest common subsequence is found with one bit per target token, a whole row of the usual table in three integer
operations (Hyyrö 2004, "Bit-parallel LCS-length computation revisited").

What was not logged cannot be scored. Logs lack names and texts now and then (OPeRA's null ids); they are stored as "",
and such a field earns nothing, whatever is predicted for it: neither for being there nor for its similarity. An action
with such a field is never matched exactly, and a click that cannot be compared is not a wrong one.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, Protocol

from replay_sessions.foundation.errors import MissingExtra
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit, reply_action

SimilarityName = Literal["rouge_l", "rouge_score"]


class Similarity(Protocol):
    """A figure in [0, 1] for how alike two texts are; one below `at_least` is returned as 0."""

    def __call__(self, prediction: str, target: str, at_least: float = 0.0) -> float: ...


def rouge_l(prediction: str, target: str, at_least: float = 0.0) -> float:
    """The ROUGE-L F-measure, in [0, 1]; 1 for equal texts, two empty ones among them.

    Whether an empty target is a target at all is for the caller to say; the reward says no.

    Args:
        at_least: A figure below this is returned as 0, mostly without being worked out.

    >>> rouge_l("search_results.red_kettle.view_product", "search_results.blue_kettle.view_product")
    0.8333333333333334
    >>> rouge_l("红色水壶", "红色水壶")
    1.0
    """
    if prediction == target:
        return 1.0
    masks, target_length = _token_masks(target)
    tokens = _tokens(prediction)
    # Where the prediction's tokens stand in the target, a bit each; their number bounds the common subsequence.
    matching = list(filter(None, map(masks.get, tokens)))
    if 2 * len(matching) < (at_least - _MARGIN) * (len(tokens) + target_length) or not matching:
        return 0.0
    row = full = (1 << target_length) - 1
    for mask in matching:
        matched = row & mask
        row = (row + matched) | (row - matched)  # carries beyond the target's bits never come back
    common = target_length - (row & full).bit_count()
    precision, recall = common / len(tokens), common / target_length
    f_measure = 2 * precision * recall / (precision + recall)
    return f_measure if f_measure >= at_least else 0.0


_MARGIN = 1e-9  # far above the rounding of F, so that the bound never decides a close case
_TOKEN_BYTES = bytes(ord(chr(byte).lower()) if byte < 128 and chr(byte).isalnum() else 32 for byte in range(256))


def _tokens(text: str) -> list[bytes]:
    """The runs of a-z and 0-9 in the lower-cased text; all other characters separate."""
    if not text.isascii():  # some letters of other scripts have an ASCII one as their lower case
        text = text.lower()
    return text.encode("ascii", "replace").translate(_TOKEN_BYTES).split()


@lru_cache(maxsize=4096)
def _token_masks(text: str) -> tuple[dict[bytes, int], int]:
    """For each token a bit mask of its positions, and the number of tokens."""
    tokens = _tokens(text)
    masks: dict[bytes, int] = {}
    for index, token in enumerate(tokens):
        masks[token] = masks.get(token, 0) | (1 << index)
    return masks, len(tokens)


def rouge_l_reference(prediction: str, target: str, at_least: float = 0.0) -> float:
    """The same figure by the `rouge_score` package itself, without the departure; many times slower.

    Raises:
        MissingExtra: `rouge_score` is not installed.
    """
    f_measure = float(_reference_scorer().score(target, prediction)["rougeL"].fmeasure)
    return f_measure if f_measure >= at_least else 0.0


# `rouge_l` of this module, and `rouge_score`, the package that it equals.
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


def unlogged_fields(logged: Action | Mapping[str, str]) -> tuple[str, ...]:
    """The fields of a logged action that its log does not know.

    >>> unlogged_fields(Click(name="")), unlogged_fields(Click(name="cart"))
    (('name',), ())
    """
    fields = logged if isinstance(logged, Mapping) else reply_action(logged)
    return tuple(field for field, text in fields.items() if not text)


def exact_match(predicted: Action, logged: Action) -> bool:
    """Whether every predicted field equals the logged one; `click_type` and `submitted` are not predicted.

    An action with a field that was not logged has no exact match.

    >>> exact_match(Click(name="cart"), Click(name="cart", click_type="nav_bar"))
    True
    """
    match predicted, logged:
        case Click(), Click():
            return predicted.name == logged.name != ""
        case TypeAndSubmit(), TypeAndSubmit():
            return predicted.name == logged.name != "" and predicted.text == logged.text != ""
        case Terminate(), Terminate():
            return True
        case _:
            return False


def is_wrong_click(predicted: Action, logged: Action) -> bool:
    """Whether `predicted` is a click, and not the logged one as far as the log tells."""
    if not isinstance(predicted, Click):
        return False
    return not isinstance(logged, Click) or predicted.name != logged.name != ""
