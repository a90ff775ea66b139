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

    P(a | offers) = exp(w · x(a)) / Σ_b exp(w · x(b))

To an agent's probabilities w is fitted by cross-entropy, which for people's clicks, 0 or 1, is maximum likelihood
(D. McFadden, 1974; L. Papke and J. Wooldridge, 1996). What a click adds to w's deviation is its score times the inverse
Hessian; so the difference of two fits to the same clicks is a paired one, and errors are clustered by session.
"""

import csv
import gzip
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, diags, hstack

from agents.agent_code import reply_identity
from agents.registry import make_agent, parse_spec
from benchmarks.studies.real_shoppers.shoppers import REFERENCES, VIEW, product_of, sample_store, viewed
from replay_sessions.elements import find_elements
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Estimate, Table, columns, print_results
from replay_sessions.schema import Click, Split
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import LazyAgent, fill_cache
from shop_env.evaluation.reply_cache import ReplyCache
from shop_env.evaluation.scored_steps import EvaluationConfig, StepKey, sessions_at, steps_at
from shop_env.metrics.statistics import ClusteredError, Codes, Floats, cluster_sums, clustered_error, estimate

EXPECTED = """\
Between products: choice and boosting have the sign of every effect that people's interval shows, and so has popularity,
which knows each product's share; ngram has that of place alone, from ranks; uniform has none. No agent is nearer to
June than people's clicks of April and May. Within a product: choice and boosting know what was looked at before;
popularity and uniform have no effect by construction; nobody has that of the distance in price to the last product, for
no agent reads it."""
BEFORE = "people before"
BETWEEN = ("bottom row", "middle column", "right column", "price, per $10", "dearer than its category")
WITHIN = ("price gap to the last product, per $10", "same part of the page as the last", "looked at before")
COLUMNS = 3
LEAST = 1e-9
RIDGE = 1e-3  # beside a sum over thousands of clicks: keeps what nobody chose, and what is not identified, finite
NEWTON_STEPS = 20
Products = Mapping[str, tuple[int, float, bool]]  # the part of the page, the price, dearer than its category


class Clicks(NamedTuple):
    """Clicks on the products of a listing.

    Attributes:
        offers: The products beside each click, its own included.
        chosen: For each click 1 where an offer was clicked, (offers,).
        facts: For each offer of all clicks BETWEEN and WITHIN, (offers, facts).
    """

    keys: list[StepKey]
    offers: list[tuple[str, ...]]
    chosen: list[Floats]
    facts: list[tuple[float, ...]]


class Effects(Record):
    """What each fact does to the log odds of a click: (facts,), and what each click adds to its deviation."""

    values: Floats
    influences: Floats
    sessions: Codes


def read_products(file: Path) -> tuple[Products, int]:
    """The products of the log, and how many of them have several places or prices."""
    seen = defaultdict(set)
    with gzip.open(file, "rt") as lines:
        for row in csv.DictReader(lines, delimiter=";"):
            about = int(row["location"]), float(row["price"]), row["price 2"] == "1"
            seen[row["page 2 (clothing model)"].lower()].add(about)
    return {name: min(values) for name, values in seen.items()}, sum(len(values) > 1 for values in seen.values())


def read_clicks(store: SessionStore, split: Split, products: Products) -> Clicks:
    """The scored clicks on products by people who looked at one before."""
    clicks = Clicks([], [], [], [])
    for session, indices in sessions_at(store, split, EvaluationConfig(split=split).keys(store)):
        names = viewed(session)
        for index in indices:
            before = [name for name in names[:index] if name]
            if before and names[index]:
                offers = _offers(session.steps[index].page)
                clicks.keys.append((session.session_id, index))
                clicks.offers.append(offers)
                clicks.chosen.append(np.array([float(name == names[index]) for name in offers]))
                clicks.facts.extend(_facts(name, before, products) for name in offers)
    return clicks


@lru_cache
def _offers(page: str) -> tuple[str, ...]:
    return tuple(name for element in find_elements(page) if (name := product_of(element.name)))


def _facts(name: str, before: Sequence[str], products: Products) -> tuple[float, ...]:
    (location, price, is_dearer), (last_location, last_price, _) = products[name], products[before[-1]]
    column = (location - 1) % COLUMNS
    between = location > COLUMNS, column == 1, column == 2, price / 10, is_dearer
    return *between, abs(price - last_price) / 10, location == last_location, name in before


def probabilities(spec: str, store: SessionStore, clicks: Clicks, folder: Path) -> list[Floats]:
    """An agent's probabilities of each click's offers, given that one of them is clicked; they are cached."""
    agent, config = parse_spec(spec), EvaluationConfig()
    identity = reply_identity(agent, config.context, store, config.seed)
    with ReplyCache(folder / f"{agent.label}.jsonl", identity) as cache:
        fill_cache(
            cache,
            LazyAgent(lambda: make_agent(agent, store=store)),
            clicks.keys,
            lambda missing: steps_at(store, config.split, missing, config.context),
            seed=config.seed,
            replies=False,
            probabilities=True,
            progress=agent.label,
        )
        held = [cache.probabilities(key) for key in clicks.keys]
    shares = []
    for key, own, offers in zip(clicks.keys, held, clicks.offers, strict=True):
        if own is None:
            raise AgentFailed(f"'{agent.label}' gave no probabilities at step {key}: run the command again.")
        weights = np.array([own.get(Click(name=f"results.{name}{VIEW}"), 0.0) for name in offers]) + LEAST
        shares.append(weights / weights.sum())
    return shares


def fit_effects(clicks: Clicks, shares: Sequence[Floats]) -> Effects:
    """The effects of all facts on these shares of each click's offers: of BETWEEN alone, and of WITHIN beside products.

    Args:
        shares: Summing to 1, for each click (offers,).
    """
    table, sessions = csr_matrix(clicks.facts), [session_id for session_id, _ in clicks.keys]
    codes = np.unique(np.concatenate(clicks.offers), return_inverse=True)[1]
    own = csr_matrix((np.ones(len(codes)), (np.arange(len(codes)), codes)))
    starts, width = np.cumsum([0, *map(len, shares[:-1])]), len(BETWEEN)
    fits = [
        fit_logit(facts, starts, np.concatenate(shares))
        for facts in (table[:, :width], hstack([table[:, width:], own], "csr"))
    ]
    values, influences = (
        np.concatenate([between, within[..., : len(WITHIN)]], -1) for between, within in zip(*fits, strict=True)
    )
    return Effects(values=values, influences=influences, sessions=np.unique(sessions, return_inverse=True)[1])


def fit_logit(facts: csr_matrix, starts: Codes, shares: Floats) -> tuple[Floats, Floats]:
    """Weights, (facts,), and what each choice adds to their deviation, (choices, facts), by Newton's method.

    Args:
        facts: Of every offer, the offers of one choice after another, (offers, facts).
        starts: The first offer of each choice, (choices,).
        shares: Of every offer, (offers,).
    """
    choice = np.repeat(np.arange(len(starts)), np.diff([*starts, len(shares)]))
    by_choice = csr_matrix((np.ones(len(choice)), (choice, np.arange(len(choice)))))
    weights = np.zeros(facts.shape[1])
    for _ in range(NEWTON_STEPS):
        powers = np.exp(facts @ weights)
        fitted = powers / np.add.reduceat(powers, starts)[choice]
        scores, means = ((by_choice @ diags(own) @ facts).toarray() for own in (shares - fitted, fitted))
        hessian = (facts.T @ diags(fitted) @ facts).toarray() - means.T @ means + RIDGE * np.eye(len(weights))
        weights = weights + np.linalg.solve(hessian, scores.sum(axis=0) - RIDGE * weights)
    return weights, np.linalg.solve(hessian, scores.T).T


def error_of(influences: Floats, clusters: Codes) -> ClusteredError | None:
    """The error of a figure with these influences, (steps,), and their clusters, (steps,)."""
    sums = cluster_sums(influences[:, None], clusters)[:, 0]
    return clustered_error(sums, np.bincount(clusters) / len(clusters))


def estimates(effects: Effects) -> list[Estimate | None]:
    """Each effect with its interval; None where an agent's probabilities are too extreme to identify it."""
    errors = [error_of(own, effects.sessions) for own in effects.influences.T]
    return [
        estimate(float(value), error) if np.isfinite(value) else None
        for value, error in zip(effects.values, errors, strict=True)
    ]


def difference(people: Effects, other: Effects, *, paired: bool) -> Effects:
    """How much larger the other effects are.

    Args:
        paired: Both are of the same clicks.
    """
    values = other.values - people.values
    if paired:
        return Effects(values=values, influences=other.influences - people.influences, sessions=people.sessions)
    sessions = np.concatenate([other.sessions, people.sessions + other.sessions.max() + 1])
    return Effects(values=values, influences=np.concatenate([other.influences, -people.influences]), sessions=sessions)


class Options(Record):
    """Measures effects of place and price.

    Attributes:
        store: The clothing shop, split by date.
        clicks: The table that it was imported from: it has the products' places.
        out: Where the results go, and what agents replied.
        agents: As of a leaderboard; they learn from the sample.
        sessions: So many of train at most.
        tested: So many of test at most.
    """

    store: Path
    clicks: Path
    out: Path
    agents: tuple[str, ...] = ("choice", "boosting", "ngram", *REFERENCES)
    sessions: int = 3000
    tested: int = 3000


def _run(options: Options) -> int:
    whole = SessionStore.open(options.store)
    store = sample_store(whole, options.out, options.sessions, options.tested)
    products, changing = read_products(options.clicks)
    june, before = (read_clicks(store, split, products) for split in ("test", "train"))
    people, earlier = (fit_effects(clicks, clicks.chosen) for clicks in (june, before))
    predicted = {"people in June": estimates(people), BEFORE: estimates(earlier)}
    differences = {BEFORE: estimates(difference(people, earlier, paired=False))}
    for spec in options.agents:
        effects = fit_effects(june, probabilities(spec, store, june, options.out / "replies"))
        predicted[label := parse_spec(spec).label] = estimates(effects)
        differences[label] = estimates(difference(people, effects, paired=True))
    config = {"agents": options.agents, "sessions": options.sessions, "tested": options.tested}
    record = {
        "expected": EXPECTED,
        "products": len(products),
        "products_that_change": changing,
        "clicks": {"test": len(june.keys), "train": len(before.keys)},
        "facts": {"between products": BETWEEN, "within a product": WITHIN},
        "predicted": predicted,
        "differences": differences,
        "provenance": provenance(config, store=whole, seed=0),
    }
    tables = [
        Table(
            title=title,
            columns=columns("fact", signed=of),
            rows=[[fact, *cells] for fact, *cells in zip((*BETWEEN, *WITHIN), *of.values(), strict=True)],
            notes=["95% intervals over sessions (CR2), of agents as they were fitted."],
        )
        for title, of in (("Effects on the log odds of a click", predicted), ("Less people's in June", differences))
    ]
    write_results(options.out, "effects", record, "\n".join(table.markdown() for table in tables))
    print_results(*tables)
    return 0


main = command(Options, _run)

if __name__ == "__main__":
    sys.exit(main())
