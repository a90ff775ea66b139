"""How alike a reply's action is to the logged one: ROUGE-L of texts, exact matches, and the kind of a click.

ROUGE-L is how much of a logged name or text a prediction has, in order (the F-measure of table 1's similarities). It is
equal to `rouge_score` (rougeL, no stemmer) to the last bit, with one departure: a text equal to the target counts as 1
even where it has no token in it. Tokens are runs of a-z and 0-9 after lower-casing, so `rouge_score` gives 0 to a query
in Chinese even against itself.

The longest common subsequence is found with one bit per target token, a whole row of the usual table in three integer
operations (Hyyrö 2004, "Bit-parallel LCS-length computation revisited").

What was not logged cannot be scored. Logs lack names and texts now and then (OPeRA's null ids); they are stored as "",
and such a field earns nothing, whatever is predicted for it: neither for being there nor for its similarity. An action
with such a field is never matched exactly, and a click that cannot be compared is not a wrong one.

The 13 kinds of click of OPeRA are derived from the name of the clicked element, where the log gives no `click_type` or
where the click is a predicted one: Customer-R1 weighs rewards by it (section 4.3) and reports fine type accuracy ("we
first calculate the click subtype from the predicted target element", section 4.2). Its rules are unpublished; ours
(click_types.toml) read the hierarchical names of OPeRA, ShopCART and the demo shop, first match first, and call the
rest `other`. How often they agree with a log's own kinds is a figure of every run on a log that has them
(`click_rule_agreement`): a predicted click that is not the logged one is judged by the rule, the logged one by the log.
"""

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, Protocol

import msgspec

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
    """Whether `predicted` is a click, and not the logged one as far as the log shows."""
    if not isinstance(predicted, Click):
        return False
    return not isinstance(logged, Click) or predicted.name != logged.name != ""


CLICK_TYPES = (
    "review",
    "search",
    "product_option",
    "product_link",
    "other",
    "purchase",
    "nav_bar",
    "page_related",
    "quantity",
    "suggested_term",
    "cart_side_bar",
    "cart_page_select",
    "filter",
)


class _Rule(msgspec.Struct, frozen=True):
    type: str
    part: Literal["first", "last", "any"]
    words: frozenset[str]


class _Rules(msgspec.Struct, frozen=True):
    rules: list[_Rule]


_RULES = msgspec.toml.decode((files("shop_env") / "click_types.toml").read_bytes(), type=_Rules).rules


@lru_cache(maxsize=65536)
def click_type_of(name: str) -> str:
    """The kind of click that clicking the element called `name` is.

    >>> click_type_of("4_stars_and_above.tiger_jbv_s18u_10_cup_rice_cooker_white.product_title")
    'product_link'
    >>> click_type_of("refinements.customer_reviews.4_stars_up")
    'filter'
    """
    parts = name.lower().replace(" ", "_").split(".")
    compared = {"first": parts[:1], "last": parts[-1:], "any": parts}
    for rule in _RULES:
        if not rule.words.isdisjoint(compared[rule.part]):
            return rule.type
    return "other"
