"""Builds the workload of env.py and reward.py: shoppers' sessions, and replies as a policy under training gives them.

Products of the demo shop have names of three words (`amber_steel_kettle`). In the ShopCART paper, the source of
Shop-R1's data, a product's name on the printed results page has 24 words on average. The length matters to the time of
ROUGE-L, so demo products get names of that length here (`with_long_names`).

The replies are about as good as those of a trained policy. Of ten, five are the logged action, three have the right
type and another element or text, one has another type, and one is no JSON.
"""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from itertools import cycle
from pathlib import Path
from random import Random

import msgspec

from replay_sessions.elements import find_elements
from replay_sessions.schema import Click, Session, Step, Terminate, TypeAndSubmit
from shop_env.replies import format_reply

_PRODUCT = re.compile(r"\b(search_results|recommended)\.(\w+)\.view_product")
_WORDS_MORE = 21
_DATA = tomllib.loads(Path(__file__).with_name("workload.toml").read_text())


def with_long_names(session: Session) -> Session:
    """Returns the session with product names as long as those of a real shop; equal names stay equal."""
    return msgspec.structs.replace(session, steps=tuple(map(_with_long_names, session.steps)))


def _with_long_names(step: Step) -> Step:
    action = step.action
    if isinstance(action, Click):
        action = msgspec.structs.replace(action, name=_PRODUCT.sub(_lengthen, action.name))
    return msgspec.structs.replace(step, page=_PRODUCT.sub(_lengthen, step.page), action=action)


@cache  # because many pages have the same names
def _add_words(name: str) -> str:
    return "_".join([name, *Random(name).choices(_DATA["words"], k=_WORDS_MORE)])


def _lengthen(match: re.Match[str]) -> str:
    return f"{match[1]}.{_add_words(match[2])}.view_product"


def replies_to(sessions: Sequence[Session]) -> list[list[str]]:
    """Returns a reply to each step of each session, as the module's docstring describes."""
    kinds = cycle(_DATA["kinds"])
    return [[_reply(step, next(kinds)) for step in session.steps] for session in sessions]


def _reply(step: Step, kind: str) -> str:
    rationale = step.rationale or ""
    names = [element.name for element in find_elements(step.page) if element.accepts == "click"]
    match step.action, kind:
        case _, "logged":
            return format_reply(rationale, step.action)
        case _, "broken":
            return f"{rationale} So I would go on."
        case Click(name=name), "same_type":
            # The next element is mostly of the same kind: another product, another department.
            return format_reply(rationale, Click(name=names[(names.index(name) + 1) % len(names)]))
        case TypeAndSubmit(name=name, text=text), "same_type":
            return format_reply(rationale, TypeAndSubmit(name=name, text=f"{text} cheap"))
        case Terminate(), "same_type":
            return format_reply(rationale, step.action)
        case Click(), _:
            return format_reply(rationale, Terminate())
        case _:
            return format_reply(rationale, Click(name=names[0]))
