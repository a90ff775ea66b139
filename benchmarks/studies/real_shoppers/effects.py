"""Do agents that learnt from April and May predict what place and price do to the clicks of June?

  python -m replay_sessions import events clicks_april_june.csv.gz \\
    --mapping clothing_shop --split-by date --test-from 2008-06-01 \\
    --out stores/dated
  python -m benchmarks.studies.real_shoppers.effects --store stores/dated \\
    --clicks clicks_april_june.csv.gz --out runs/effects

A conditional logit is fitted to which product of a listing people clicked in
June, and again to the probabilities that each agent had for those clicks.
No product changes its place, page or price in these months. So "between
products" says what place and price go with, whatever else the products differ
in; "within a product" (each has a weight of its own) uses what does change:
what the shopper did before. Leaves effects.json and effects.md in OUT; killed,
it goes on where it was.
"""

import csv
import gzip
import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace
from scipy.sparse import csr_matrix, hstack

from agents.agent_code import reply_identity
from agents.registry import make_agent, parse_spec
from benchmarks.studies.real_shoppers.logit import LogitFit, error_of, fit_logit
from benchmarks.studies.real_shoppers.samples import sample_store
from replay_sessions.elements import find_elements
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.errors import AgentFailed, check_at_least
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Estimate, Table, columns, print_results
from replay_sessions.schema import Action, Click, Split
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import LazyAgent, fill_cache
from shop_env.evaluation.generate import NO_PROBABILITIES
from shop_env.evaluation.reply_cache import ReplyCache
from shop_env.evaluation.scored_steps import EvaluationConfig, StepKey, sessions_at, steps_at
from shop_env.metrics.statistics import MIN_CLUSTERS, ClusteredError, Codes, Floats, estimate

EXPECTED = """\
Between products: choice and boosting have the sign of every effect that people's interval shows, and so has popularity,
which knows each product's share; ngram has that of place alone, from ranks; uniform has none. No agent is nearer to
June than people's clicks of April and May. Within a product: choice and boosting know what was looked at before;
popularity and uniform have no effect by construction; nobody has that of the distance in price to the last product, for
no agent reads it."""
REFERENCES = "benchmarks.studies.real_shoppers.references"
AGENTS = ("choice", "boosting", "ngram", f"popularity={REFERENCES}:Popularity", f"uniform={REFERENCES}:Uniform")
BEFORE = "people, April and May"
BETWEEN = ("bottom row", "middle column", "right column", "price, per $10", "dearer than its category")
WITHIN = ("price gap to the last product, per $10", "same part of the page as the last", "looked at before")
MODELS = {"between products": BETWEEN, "within a product": WITHIN}
VIEW = ".view_product"
LEAST = 1e-9
COLUMNS = 3


class Product(NamedTuple):
    """What the log says of a product."""

    location: int
    price: float
    is_dearer: bool


class Choices(NamedTuple):
    """Clicks on the products of a listing; the offers of one click after another.

    Attributes:
        offers: Names of the products beside each click, its own included.
        starts: The first offer of each click, (clicks,).
        chosen: 1 for what was clicked, (offers,).
        facts: By model, (offers, facts); within a product the weights of the products come last.
        sessions: The number of each click's session, (clicks,).
    """

    keys: list[StepKey]
    offers: list[tuple[str, ...]]
    starts: Codes
    chosen: Floats
    facts: dict[str, csr_matrix]
    sessions: Codes


class Effect(Record):
    """What a fact does to the log odds of a click: for people, for an agent, and the difference of the two."""

    model: str
    fact: str
    agent: str
    people: Estimate
    predicted: Estimate
    difference: Estimate


def read_products(file: Path) -> tuple[dict[str, Product], int]:
    """The products of the log by name, and how many of them have several places or prices."""
    seen: defaultdict[str, set[Product]] = defaultdict(set)
    with gzip.open(file, "rt") as lines:
        for row in csv.DictReader(lines, delimiter=";"):
            product = Product(int(row["location"]), float(row["price"]), row["price 2"] == "1")
            seen[row["page 2 (clothing model)"].lower()].add(product)
    return {name: min(values) for name, values in seen.items()}, sum(len(values) > 1 for values in seen.values())


def read_choices(store: SessionStore, split: Split, products: Mapping[str, Product]) -> Choices:
    """The scored clicks on products by people who looked at one before."""
    keys, offers, facts = list[StepKey](), list[tuple[str, ...]](), list[tuple[float, ...]]()
    chosen, scored = list[bool](), EvaluationConfig(split=split).keys(store)
    for session, indices in sessions_at(store, split, scored):
        viewed = [_viewed(step.action) for step in session.steps]
        for index in indices:
            before = [name for name in viewed[:index] if name]
            if before and viewed[index]:
                keys.append((session.session_id, index))
                offers.append(_offered(session.steps[index].page))
                facts += [_facts(name, before, products) for name in offers[-1]]
                chosen += [name == viewed[index] for name in offers[-1]]
    table, width = csr_matrix(facts), len(BETWEEN)
    codes = np.unique([name for names in offers for name in names], return_inverse=True)[1]
    own_weights = csr_matrix((np.ones(len(codes)), (np.arange(len(codes)), codes)))
    return Choices(
        keys=keys,
        offers=offers,
        starts=np.cumsum([0, *map(len, offers[:-1])]),
        chosen=np.array(chosen, dtype=np.float64),
        facts=dict(zip(MODELS, (table[:, :width], hstack([table[:, width:], own_weights], "csr")), strict=True)),
        sessions=np.unique([session_id for session_id, _ in keys], return_inverse=True)[1],
    )


def _viewed(action: Action) -> str:
    """The product whose page a click opens; "" for other actions."""
    return _product(action.name) if isinstance(action, Click) and action.name.endswith(VIEW) else ""


def _product(name: str) -> str:
    return name.removesuffix(VIEW).rpartition(".")[2]


@lru_cache
def _offered(page: str) -> tuple[str, ...]:
    return tuple(_product(element.name) for element in find_elements(page) if element.name.endswith(VIEW))


def _facts(name: str, before: Sequence[str], products: Mapping[str, Product]) -> tuple[float, ...]:
    """A product's place and price, and how it stands to what was looked at before."""
    own, last = products[name], products[before[-1]]
    column = (own.location - 1) % COLUMNS
    return (
        *(own.location > COLUMNS, column == 1, column == 2, own.price / 10, own.is_dearer),
        *(abs(own.price - last.price) / 10, own.location == last.location, name in before),
    )


def ask(spec: str, store: SessionStore, choices: Choices, folder: Path) -> Floats:
    """An agent's probabilities of the products at each click, given that one of them is clicked, (offers,)."""
    agent, config = parse_spec(spec), EvaluationConfig(likelihood=True)
    identity = reply_identity(agent, config.context, store, config.seed)
    with ReplyCache(folder / f"{agent.label}.jsonl", identity) as cache:
        fill_cache(
            cache,
            LazyAgent(lambda: make_agent(agent, store=store)),
            choices.keys,
            lambda missing: steps_at(store, config.split, missing, config.context),
            seed=config.seed,
            replies=False,
            probabilities=True,
            progress=agent.label,
        )
        shares = []
        for key, names in zip(choices.keys, choices.offers, strict=True):
            if (held := cache.probabilities(key)) is None:
                raise AgentFailed(f"'{agent.label}' at {key}: {cache.probabilities_error(key) or NO_PROBABILITIES}")
            own = np.array([held.get(Click(name=f"results.{name}{VIEW}"), 0.0) for name in names]) + LEAST
            shares.append(own / own.sum())
    return np.concatenate(shares)


def compare(agent: str, model: str, people: LogitFit, predicted: LogitFit, of: Choices, other: Choices) -> list[Effect]:
    """The effects of a model.

    Args:
        of, other: The clicks that people and the agent were fitted to; of the same clicks the difference is paired.
    """
    effects = []
    for number, fact in enumerate(MODELS[model]):
        values = [float(fit.weights[number]) for fit in (people, predicted)]
        errors = [
            error_of(fit.influences[:, number], side.sessions) for fit, side in ((people, of), (predicted, other))
        ]
        if of is other:
            difference = error_of((predicted.influences - people.influences)[:, number], of.sessions)
        else:
            difference = _joined(*errors)
        own = [estimate(value, error) for value, error in zip(values, errors, strict=True)]
        effects.append(Effect(model=model, fact=fact, agent=agent, people=own[0], predicted=own[1],
                              difference=estimate(values[1] - values[0], difference)))  # fmt: skip
    return effects


def _joined(left: ClusteredError | None, right: ClusteredError | None) -> ClusteredError | None:
    """Of a difference between two samples of sessions."""
    if left is None or right is None:
        return None
    fewest = min((left, right), key=lambda error: error.degrees_of_freedom)
    return replace(fewest, standard_error=math.hypot(left.standard_error, right.standard_error))


class Effects(Record):
    """Measures effects of place and price.

    Attributes:
        store: The clothing shop, split by date.
        clicks: The table that it was imported from: it has the products' places.
        out: Where the results go, and what agents replied.
        agents: As of a leaderboard; they learn from the sample.
        sessions: So many of train and of test at most.
        seed: Of the sample.
    """

    store: Path
    clicks: Path
    out: Path
    agents: tuple[str, ...] = AGENTS
    sessions: int = 3000
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(MIN_CLUSTERS, sessions=self.sessions)


def _run(options: Effects) -> int:
    whole = SessionStore.open(options.store)
    store = sample_store(whole, options.out, options.sessions, options.seed)
    products, changing = read_products(options.clicks)
    june, before = (read_choices(store, split, products) for split in ("test", "train"))
    fits = {model: fit_logit(june.facts[model], june.starts, june.chosen) for model in MODELS}
    effects, costs = [], dict[str, Estimate]()
    for model, people in fits.items():
        earlier = fit_logit(before.facts[model], before.starts, before.chosen)
        effects += compare(BEFORE, model, people, earlier, june, before)
    for spec in options.agents:
        shares, label = ask(spec, store, june, options.out / "replies"), parse_spec(spec).label
        nats = -np.log(shares[june.chosen == 1])
        costs[label] = estimate(float(nats.mean()), error_of((nats - nats.mean()) / len(nats), june.sessions))
        for model, people in fits.items():
            fit = fit_logit(june.facts[model], june.starts, shares)
            effects += compare(label, model, people, fit, june, june)
    record = {
        "expected": EXPECTED,
        "products": len(products),
        "products_that_change": changing,
        "clicks": {"test": len(june.keys), "train": len(before.keys)},
        "nats": costs,
        "effects": effects,
        "provenance": provenance(msgspec.to_builtins(options, enc_hook=str), store=whole, seed=options.seed),
    }
    tables = build_tables(effects, costs)
    write_results(options.out, "effects", record, "\n".join(table.markdown() for table in tables))
    print_results(*tables)
    return 0


def build_tables(effects: Sequence[Effect], costs: Mapping[str, Estimate]) -> list[Table]:
    """Effects by fact and agent, and what each click costs an agent."""
    return [
        Table(
            title="Log odds of a click on a product",
            columns=columns("model", "fact", "predicted by", signed=("people in June", "predicted", "difference")),
            rows=[[e.model, e.fact, e.agent, e.people, e.predicted, e.difference] for e in effects],
            notes=["95% intervals over sessions (CR2), of the agents as they were fitted."],
        ),
        Table(
            title="The clicked product among those of its listing",
            columns=columns("agent", nats=("NLL",)),
            rows=[[agent, cost] for agent, cost in costs.items()],
        ),
    ]


main = command(Effects, _run)

if __name__ == "__main__":
    sys.exit(main())
