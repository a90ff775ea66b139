"""Simulates the shoppers of the demo shops and their visits, and computes the probability of each of their actions.

A shopper's policy depends only on what an observation shows (persona, goal, page, history), so the best achievable
accuracy is known. The small shop's shoppers follow `policy.toml`, which has these traits:

    price    thrifty terminates when the price is high and pays through the cart; easy buys at once
    care     quick gives up when nothing fits; picky turns the page and chooses a size first; reviewer searches anew
             and reads reviews first
    search   exact types brand, style and noun; brief starts from a department and refines by brand

The likeliest action has a probability of 0.64 to 0.84, and its words mostly stand in the observation already.

A population is the seed of its shoppers: its visit n always has the same shopper and the same goal. In the small shop,
shopper and shop share one stream of random numbers. The realistic shop draws nothing, and each choice has its own
stream, so the same visit to two variants of the shop differs only by what the pages show.

The store "demo" holds sessions of the small shop, which are generated on first use and kept in the user's cache. The
name of its folder contains a hash of the shop's code and phrases, so each version of the shop has its own store.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, assert_never

import msgspec

from replay_sessions.demo_shop import realistic
from replay_sessions.demo_shop.catalogue import (
    BRANDS,
    DEPARTMENT_OF,
    NOUNS,
    PHRASES,
    POLICY,
    SIZES,
    STYLES,
    Product,
    get_reason,
    personas,
)
from replay_sessions.demo_shop.realistic.read import is_realistic_page
from replay_sessions.demo_shop.shop import DemoShop, PageSize, Shop
from replay_sessions.foundation.durable_files import cache_folder
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.schema import (
    SCHEMA_VERSION,
    Action,
    Click,
    Persona,
    Scroll,
    Session,
    Step,
    Terminate,
    TypeAndSubmit,
    reply_action,
)
from replay_sessions.store.writer import StoreWriter

SESSIONS_PER_USER = 4
DEMO_SESSIONS = 8000
DEMO_SEED = 0
SOURCE = "demo_shop"
MAX_STEPS = 10  # after this many steps a shopper terminates
UNLIKELY = 1e-9  # for actions that the policy excludes: another agent's history may hold them
# Brand, style and noun of the wanted product, as pages of results show them.
SHOWN_ON_RESULTS = (r"refinements\.brand\.(\w+)", r"refinements\.style\.(\w+)", r"[a-z]_([a-z]+)\.view_product")

SMALL_PERSONAS = personas("small")
RULES = {page: list(rules) for page, rules in groupby(POLICY["rule"], key=lambda rule: rule["when"]["page"])}


class Goal(NamedTuple):
    """The aim of a shopper in one session."""

    product: Product
    size: str

    def text(self) -> str:
        return f"Buy a {' '.join(self.product)}, size {self.size}."


def _small_options(observation: Mapping[str, Any]) -> Callable[[Mapping[str, str]], list[tuple[Action, float]]]:
    """Returns a function from a shopper's traits to the possible next actions and their probabilities.

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


def _small_rationale(page: str, action: Action) -> str:
    match action:
        case Terminate():
            return str(PHRASES["small"]["terminate"].get(_read_page(page)[1], "I have looked long enough."))
        case TypeAndSubmit(text=text):
            return f"I search for the {text.rpartition(' ')[2]} I want."
        case Click(name=name):
            return get_reason("small", name)
        case Scroll():
            return "I look further down."
        case _:
            assert_never(action)


class _View(NamedTuple):
    """The part of an observation that the policy depends on.

    Attributes:
        facts: Values for the conditions of the rules.
        words: Values for the placeholders in the actions of the rules.
    """

    facts: dict[str, str | bool]
    words: dict[str, str]


def _view_of(observation: Mapping[str, Any]) -> _View:
    page, (product, size) = observation["page"], _parse_goal(observation["goal"])
    title, note = _read_page(page)
    target = f"search_results.{'_'.join(product)}.view_product"
    names = re.findall(r'name="(search_results\.[^"]*)"', page)
    past = [msgspec.json.decode(step["action"]).get("name", "") for step in observation["history"]]
    opened = max((index for index, name in enumerate(past) if name.endswith(".view_product")), default=0)
    facts: dict[str, str | bool] = {
        "page": title,
        "note": note,
        "is_wanted": f"<h1>{' '.join(product)}</h1>" in page,
        "size_chosen": 'aria-checked="true"' in page,
        "reviews_read": "product.reviews" in past[opened:],
    }
    words = {
        **product._asdict(),
        "size": size,
        "department": DEPARTMENT_OF[product.noun],
        "target": target,
        "other": next((name for name in names if name != target), ""),
    }
    return _View(facts, words)


def _read_page(page: str) -> tuple[str, str]:
    """Returns the title of a page of the small shop, and its note: what the page says of its products.

    Raises:
        ValueError: The page is not one of the small shop.
    """
    title, heading, paragraph = (
        str(match[1]) if match else ""
        for match in (re.search(f"<{tag}>(.*?)</{tag}>", page) for tag in ("title", "h1", "p"))
    )
    if not title:
        raise ValueError("this page is not one of the demo shop: it has no <title>")
    return title, paragraph if title in ("product", "cart") else heading


def _parse_goal(text: str) -> Goal:
    match = re.fullmatch(r"Buy a (\w+) (\w+) (\w+), size (\w+)\.", text)
    if match is None or match[3] not in NOUNS:
        raise ValueError(f"the goal {text!r} is not one of the demo shop: 'Buy a BRAND STYLE NOUN, size SIZE.'")
    return Goal(Product(match[1], match[2], match[3]), match[4])


def _parse_action(text: str) -> Action:
    """Parses an action in the notation of policy.toml.

    >>> _parse_action("type red kettle")
    TypeAndSubmit(name='search_input', text='red kettle', submitted=True)
    """
    verb, _, argument = text.partition(" ")
    if verb == "terminate":
        return Terminate()
    return Click(name=argument) if verb == "click" else TypeAndSubmit(name="search_input", text=argument)


class ShopVisit:
    """Visit `number` of a population.

    Args:
        population: Seed of the population.
        page_size: `small`: the small shop; `compact`: the realistic shop; `realistic`: the same with everything else
            that a large shop's pages hold, 100 kB a page, which changes no choice.
        variant: Variant of the realistic shop.

    Attributes:
        shop: The shop at the beginning of the visit.

    Raises:
        BadConfig: A variant is given for the small shop, which has none.
    """

    def __init__(
        self, population: int, number: int, page_size: PageSize, variant: realistic.ShopVariant = realistic.CONTROL
    ) -> None:
        user = number // SESSIONS_PER_USER
        self.user_id = f"shopper-{population}-{user:05}"
        self.persona = draw_persona(Random(f"{population} user {user}"), page_size)
        self._stream = f"{population} session {number}"
        self._random = random = Random(self._stream)
        self._choices = 0
        self.shop: Shop
        if page_size == "small":
            if variant != realistic.CONTROL:
                raise BadConfig("the small demo shop has no variants; ask for page_size 'compact' or 'realistic'.")
            product = Product(random.choice(BRANDS), random.choice(STYLES), random.choice(NOUNS))
            goal = Goal(product, random.choice(SIZES))
            self.goal, self.shop = goal.text(), DemoShop(random, goal.product)
        else:
            self.goal = realistic.draw_need(random).text()
            self.shop = realistic.RealisticShop(variant, is_surrounded=page_size == "realistic")
        self._page_size = page_size

    def choose(self, probabilities: Mapping[Action, float]) -> Action:
        """Draws the shopper's next action."""
        is_small = self._page_size == "small"
        random = self._random if is_small else Random(f"{self._stream} choice {self._choices}")
        self._choices += 1
        return random.choices(list(probabilities), list(probabilities.values()))[0]


def draw_persona(random: Random, page_size: PageSize) -> Persona:
    """Draws one of the shop's twelve personas, all equally likely."""
    return random.choice(SMALL_PERSONAS if page_size == "small" else realistic.PERSONAS)


def generate_sessions(
    count: int,
    seed: int,
    page_size: PageSize = "small",
    variant: realistic.ShopVariant = realistic.CONTROL,
    utility: realistic.UtilityName = "own",
) -> Iterator[Session]:
    """Yields `count` sessions of a demo shop, four per user; session i depends only on i and the other arguments."""
    for index in range(count):
        visit = ShopVisit(seed, index, page_size, variant)
        history: list[dict[str, Any]] = []
        steps: list[Step] = []
        while visit.shop.outcome is None:
            page = visit.shop.page
            observation = {"page": page, "history": history, "persona": visit.persona.text, "goal": visit.goal}
            action = visit.choose(action_probabilities(observation, utility))
            steps.append(Step(page=page, action=action, rationale=rationale_for(page, action)))
            history.append({"action": msgspec.json.encode(reply_action(action))})
            visit.shop.respond(action)
        yield Session(
            session_id=f"demo-{seed}-{index:06}",
            user_id=visit.user_id,
            steps=tuple(steps),
            source=SOURCE,
            persona=visit.persona,
            goal=visit.goal,
        )


def action_probabilities(observation: Mapping[str, Any], utility: realistic.UtilityName = "own") -> dict[Action, float]:
    """Returns the shopper's policy: every possible next action and its probability, likeliest first; they sum to 1.

    Averages over what the observation hides, weighted by the likelihood of the history: over all personas if the
    persona is missing or from another shop, and over the goals that the pages are compatible with.

    Args:
        observation: Observation of the env; `page`, `history`, `persona` and `goal` are read.
        utility: Utility by which the realistic shop's shoppers value an offer.

    Raises:
        ValueError: The goal or page is not one of a demo shop, or the goal is hidden and the pages do not tell it.
    """
    goals = _open_goals(observation)
    all_personas = realistic.PERSONAS if _is_realistic(goals[0]) else SMALL_PERSONAS
    possible_personas = [persona for persona in all_personas if persona.text == observation["persona"]] or all_personas
    is_fully_shown = len(goals) == len(possible_personas) == 1
    past = [
        ({**step, "history": observation["history"][:index]}, msgspec.json.decode(step["action"], type=Action))
        for index, step in enumerate(observation["history"])
        if not is_fully_shown and step["page"]  # without its page, an action has no likelihood
    ]
    policies: list[tuple[dict[Action, float], float]] = []
    for goal in goals:
        policy = _policy(observation, goal, utility)
        past_policies = [(_policy(earlier, goal, utility), action) for earlier, action in past]
        for persona in possible_personas:
            likelihood = math.prod(earlier(persona.traits).get(action, UNLIKELY) for earlier, action in past_policies)
            policies.append((policy(persona.traits), likelihood))
    total = sum(likelihood for _, likelihood in policies)
    probabilities: dict[Action, float] = {}
    for shares, likelihood in policies:
        for action, share in shares.items():
            probabilities[action] = probabilities.get(action, 0.0) + share * (likelihood / total)
    return dict(sorted(probabilities.items(), key=lambda item: -item[1]))


def _policy(
    observation: Mapping[str, Any], goal: str, utility: realistic.UtilityName
) -> Callable[[Mapping[str, str]], dict[Action, float]]:
    """Returns the policy of shoppers with this goal, as a function of their traits."""
    observation = {**observation, "goal": goal}
    options_of = realistic.action_options(observation, utility) if _is_realistic(goal) else _small_options(observation)

    def shares(traits: Mapping[str, str]) -> dict[Action, float]:
        weights = options_of(traits)
        total = sum(weight for _, weight in weights)
        return {action: weight / total for action, weight in weights}

    return shares


def _open_goals(observation: Mapping[str, Any]) -> list[str]:
    """Returns the goals that an observation is compatible with.

    If the goal is hidden, the small shop's results tell the product, and a click on a size tells the size.
    """
    if observation["goal"]:
        return [observation["goal"]]
    history = observation["history"]
    pages = "".join([*(step["page"] for step in history), observation["page"]])
    product = [re.search(pattern, pages) for pattern in SHOWN_ON_RESULTS]
    words = [match[1] for match in product if match]
    if len(words) < len(product):
        raise ValueError("the goal is hidden and the pages do not tell it; show it by --context.goal shown")
    chosen = re.findall(r"product\.options\.size\.(\w+)", "".join(step["action"] for step in history))
    return [Goal(Product(*words), size).text() for size in chosen[:1] or SIZES]


def rationale_for(page: str, action: Action) -> str:
    """Returns the shopper's rationale for `action`, one sentence in the first person.

    It depends only on the page and the action, so a rationale in the history says nothing of the goal or the persona
    that the history's pages and actions do not.
    """
    return (realistic.rationale_for if is_realistic_page(page) else _small_rationale)(page, action)


def _is_realistic(goal: str) -> bool:
    return goal.startswith("Find ")


def demo_store_path() -> Path:
    """Returns the path of the demo store, which is generated if it does not exist."""
    path = cache_folder() / f"demo-{_shop_version()}"
    if not path.is_dir():
        try:
            write_demo_store(path, DEMO_SESSIONS, DEMO_SEED)
        except BadConfig:
            if not path.is_dir():  # otherwise another process has just written the same sessions
                raise
    return path


def write_demo_store(
    path: Path,
    sessions: int,
    seed: int,
    page_size: PageSize = "small",
    utility: realistic.UtilityName = "own",
    **writing: Any,
) -> None:
    """Writes a store of generated sessions.

    Args:
        sessions: Number of sessions.
        writing: Further arguments of StoreWriter: `splits`, `overwrite`.
    """
    options = {"sessions": str(sessions), "seed": str(seed), "page_size": page_size}
    if utility != "own":
        options["utility"] = utility
    with (
        StoreWriter(path, source=SOURCE, options=options, **writing) as writer,
        progress_bar("visits", sessions) as advance,
    ):
        for session in generate_sessions(sessions, seed, page_size, utility=utility):
            writer.write(session)
            advance(1)


def _shop_version() -> str:
    digest = blake2b(f"{SCHEMA_VERSION} {DEMO_SESSIONS} {DEMO_SEED}".encode(), digest_size=6)
    for path in sorted(Path(__file__).parent.glob("*.*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
