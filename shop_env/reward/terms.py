"""The rows of Table 1 of Shop-R1, and the exact match that its baselines and Customer-R1 reward: pure functions.

| row | function |
|---|---|
| format | none needed: `RewardConfig.format` for every reply that can be read, and nothing at all for others |
| type | none needed: `RewardConfig.action_type` where the types are the same |
| click | `click_terms` |
| type_and_submit | `type_and_submit_terms` |
| terminate | nothing beyond its type |
| exact match (baselines, Customer-R1) | `exact_match`, `exact_weight` |

score.py decides which rows apply and adds them up. Texts are compared by ROUGE-L; one below the threshold τ
earns nothing ("only when that similarity exceeds a preset threshold"; reaching it is enough here, in floating point as
`rouge_score` computes it: precision 1 and recall 3/5 give 0.7499999999999999).

What was not logged cannot be scored. Logs lack names and texts now and then (OPeRA's null ids); they are stored as "",
and such a field earns nothing, whatever is predicted for it: neither for being there nor for its similarity. An action
with such a field is never matched exactly, and a click that cannot be compared is not a wrong one.
"""

from collections.abc import Mapping

from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit, reply_action
from shop_env.click_types import click_type_of
from shop_env.reward.similarity import Similarity, rouge_l


def unlogged_fields(logged: Action | Mapping[str, str]) -> tuple[str, ...]:
    """The fields of a logged action that its log does not know.

    >>> unlogged_fields(Click(name="")), unlogged_fields(Click(name="cart"))
    (('name',), ())
    """
    fields = logged if isinstance(logged, Mapping) else reply_action(logged)
    return tuple(field for field, text in fields.items() if not text)


def click_terms(
    predicted: Click,
    logged: Click,
    name_present: float,
    dars: float,
    threshold: float,
    similarity: Similarity = rouge_l,
) -> tuple[float, float]:
    """A name at all, and DARS × its similarity."""
    if not logged.name:
        return 0.0, 0.0
    return name_present if predicted.name else 0.0, dars * similarity(predicted.name, logged.name, threshold)


def type_and_submit_terms(
    predicted: TypeAndSubmit,
    logged: TypeAndSubmit,
    name_present: float,
    text_present: float,
    name_similarity: float,
    dars: float,
    threshold: float,
    similarity: Similarity = rouge_l,
) -> tuple[float, float, float, float]:
    """A name at all, a text at all, the name's similarity, and DARS × the text's similarity."""
    return (
        name_present if predicted.name and logged.name else 0.0,
        text_present if predicted.text and logged.text else 0.0,
        name_similarity * similarity(predicted.name, logged.name, threshold) if logged.name else 0.0,
        dars * similarity(predicted.text, logged.text, threshold) if logged.text else 0.0,
    )


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


def exact_weight(
    logged: Action, *, typing: float, click: float, click_types: Mapping[str, float], terminate: float
) -> float:
    """Customer-R1's w(a): what an exact match of `logged` is worth, clicks by their subtype."""
    match logged:
        case Click():
            return click_types.get(logged.click_type or click_type_of(logged.name), click)
        case TypeAndSubmit():
            return typing
        case Terminate():
            return terminate
