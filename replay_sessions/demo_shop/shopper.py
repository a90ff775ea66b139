"""The small shop's shoppers: what they want, and how likely each next action is.

A shopper's policy is a function of what an observation shows (persona, goal, page, history) and of nothing else, so
the best achievable accuracy is known: `policy.toml` is the policy itself, not a copy. Traits:

    price    thrifty terminates when the price is high and pays through the cart; easy buys at once
    care     quick gives up when nothing fits; picky turns the page and chooses a size first; reviewer searches anew
             and reads reviews first
    search   exact types brand, style and noun; brief starts from a department and refines by brand

The likeliest action has a probability of 0.64 to 0.84 and mostly follows from words the shopper has already given.
"""

import re
from collections.abc import Callable, Mapping
from itertools import groupby
from random import Random
from typing import Any, NamedTuple

import msgspec

from replay_sessions.demo_shop.catalogue import BRANDS, NOUNS, SIZES, STYLES, Product, department_of
from replay_sessions.demo_shop.phrases import PHRASES, POLICY, personas, reason_for
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit

MAX_STEPS = 10  # then a shopper gives up

PERSONAS = personas("small")
RULES = {page: list(rules) for page, rules in groupby(POLICY["rule"], key=lambda rule: rule["when"]["page"])}


class Goal(NamedTuple):
    """What a shopper wants in one session."""

    product: Product
    size: str

    def text(self) -> str:
        return f"Buy a {self.product.title}, size {self.size}."


def draw_goal(random: Random) -> Goal:
    """One product and size, all equally likely."""
    product = Product(random.choice(BRANDS), random.choice(STYLES), random.choice(NOUNS))
    return Goal(product, random.choice(SIZES))


def action_options(observation: Mapping[str, Any]) -> Callable[[Mapping[str, str]], list[tuple[Action, float]]]:
    """What a shopper may do next: a function of the shopper's traits to actions with their probabilities.

    Raises:
        ValueError: The goal or page is not one of the small demo shop.
    """
    view = _view_of(observation)
    page = view.facts["page"]
    if page not in RULES:
        raise ValueError(f"the demo shop has no {page!r} page")

    def options(traits: Mapping[str, str]) -> list[tuple[Action, float]]:
        if len(observation["history"]) >= MAX_STEPS:
            return [(Terminate(), 1.0)]
        facts = {**view.facts, **traits}
        rule = next(rule for rule in RULES[page] if rule["when"].items() <= facts.items())
        return [(_parse_action(text.format_map(view.words)), weight) for text, weight in rule["options"].items()]

    return options


def rationale_for(observation: Mapping[str, Any], action: Action) -> str:
    """The one first-person sentence that the shopper would give for `action`."""
    view = _view_of(observation)
    noun = view.words["noun"]
    match action:
        case Terminate():
            reason: str = PHRASES["small"]["terminate"].get(view.facts["note"], "I have looked long enough.")
            return reason
        case TypeAndSubmit():
            return f"I search for the {noun} I want."
        case Click(name=name) if name == view.words["target"]:
            return f"This {noun} is just what I want."
        case Click(name=name):
            return reason_for("small", name)


class _View(NamedTuple):
    """What the policy sees in an observation.

    Attributes:
        facts: What the rules ask for.
        words: What stands in the actions of the rules.
    """

    facts: dict[str, str | bool]
    words: dict[str, str]


def _view_of(observation: Mapping[str, Any]) -> _View:
    page, (product, size) = observation["page"], _parse_goal(observation["goal"])
    title, heading, paragraph = (
        match and match[1] for match in (re.search(f"<{tag}>(.*?)</{tag}>", page) for tag in ("title", "h1", "p"))
    )
    if title is None:
        raise ValueError("this page is not one of the demo shop: it has no <title>")
    target = f"search_results.{product.slug}.view_product"
    names = re.findall(r'name="(search_results\.[^"]*)"', page)
    past = [msgspec.json.decode(step["action"]).get("name", "") for step in observation["history"]]
    opened = max((index for index, name in enumerate(past) if name.endswith(".view_product")), default=0)
    facts = {
        "page": title,
        "note": (paragraph if title in ("product", "cart") else heading) or "",
        "is_wanted": heading == product.title,
        "size_chosen": 'aria-checked="true"' in page,
        "reviews_read": "product.reviews" in past[opened:],
    }
    words = {
        **product._asdict(),
        "size": size,
        "department": department_of(product.noun),
        "target": target,
        "other": next((name for name in names if name != target), ""),
    }
    return _View(facts, words)


def _parse_goal(text: str) -> Goal:
    match = re.fullmatch(r"Buy a (\w+) (\w+) (\w+), size (\w+)\.", text)
    if match is None or match[3] not in NOUNS:
        raise ValueError(f"the goal {text!r} is not one of the demo shop: 'Buy a BRAND STYLE NOUN, size SIZE.'")
    return Goal(Product(match[1], match[2], match[3]), match[4])


def _parse_action(text: str) -> Action:
    """An action as policy.toml writes it.

    >>> _parse_action("type red kettle")
    TypeAndSubmit(name='search_input', text='red kettle', submitted=True)
    """
    verb, _, rest = text.partition(" ")
    if verb == "terminate":
        return Terminate()
    return Click(name=rest) if verb == "click" else TypeAndSubmit(name="search_input", text=rest)
