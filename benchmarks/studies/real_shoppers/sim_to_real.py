"""Train on simulated sessions, test on people's: what an agent's sessions are worth beside people's own.

  python -m benchmarks.studies.real_shoppers.sim_to_real \\
    --store stores/dated --out runs/sim_to_real
  python -m benchmarks.studies.real_shoppers.sim_to_real \\
    --store stores/merchandise --tasks leaving purchase product \\
    --out runs/sim_to_real_merchandise

Agents learn from people's sessions of the train split, then walk freely
through the pages of the log, as many visits as these people made. The same
models are trained on people's sessions, on each agent's, on half of each (mix),
on people's with shuffled outcomes, and tested on people of the test split.
Leaves sim_to_real.json and sim_to_real.md in OUT; killed, it goes on where it
was.

    leaving     will the visit end on this page?     logistic regression over what was done so far, and the page
    purchase    will it end in a purchase?           the same
    product     which product is looked at next?     an n-gram model over the products so far (Witten-Bell)

Leaving and purchase are judged on pages of kinds on which people's visits end, from the second step on. The protocol is
that of SimTrace (agentic-foundation-modeling-research/SimTrace).
"""

import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from agents.baselines.fitted import WittenBell
from agents.registry import make_agent, parse_spec
from benchmarks.studies.real_shoppers.effects import error_of
from benchmarks.studies.real_shoppers.logged_shop import LinkGraph, is_purchase, simulate
from benchmarks.studies.real_shoppers.shoppers import REFERENCES, VIEW, page_kind, sample_store, viewed
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Estimate, Table, columns, print_results
from replay_sessions.schema import Session, Terminate
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import LazyAgent
from shop_env.metrics.statistics import Codes, Floats, pooled_over_seeds

EXPECTED = """\
Leaving: a model trained on choice's sessions has an AUC within 0.03 of one trained on people's, ngram's within 0.05,
for both know how visits end; popularity's and uniform's are near 0.5, as they leave with the same chance always. Next
product: people's sessions are better than every agent's, by 2 points of accuracy or more, since agents know listings
rather than products; choice is nearest. The mix lies between people and choice. With 28 purchases no difference in the
purchase model is significant."""
FREE = "temperature=1&skip_first_action=false"
PEOPLE, SHUFFLED, MIX = "people", "people, shuffled", "mix"
LAST_PRODUCTS = 2
Task = Literal["leaving", "purchase", "product"]
Kinds = frozenset[frozenset[str]]


class Example(NamedTuple):
    """Something to predict.

    Attributes:
        facts: What is known: of `product` those looked at last, else words and numbers.
        outcome: What came: 0 or 1, of `product` its name.
    """

    facts: Any
    outcome: Any
    user: str


class Score(NamedTuple):
    """A figure, and what each example adds to its deviation, (examples,)."""

    value: float
    influences: Floats


class Result(Record):
    """What a model is worth on people, over seeds, and how far it is from one that was trained on people's sessions."""

    task: Task
    measure: str
    source: str
    value: Estimate
    difference: Estimate | None


def examples(session: Session, task: Task, kinds: Kinds) -> Iterator[Example]:
    """What can be predicted of a session.

    Args:
        kinds: Of pages on which leaving and purchase are predicted.
    """
    products, end = viewed(session), session.steps[-1].action
    if task == "product":
        names = [name for name in products if name]
        for index in range(1, len(names)):
            yield Example(tuple(names[max(0, index - LAST_PRODUCTS) : index]), names[index], session.user_id)
        return
    done = [getattr(step.action, "name", "") for step in session.steps]
    for index, step in enumerate(session.steps[1:], start=1):
        if (kind := page_kind(step.page)) in kinds:
            ends = index == len(done) - 1 and (isinstance(end, Terminate) or is_purchase(end))
            facts = {
                "page " + " ".join(sorted(kind)): 1,
                f"last {done[index - 1]}": 1,
                **{f"did {name.rpartition('.')[2]}": 1 for name in done[:index] if not name.endswith(VIEW)},
                "steps": math.log(index),
                "products": math.log1p(len({*products[:index]} - {""})),
            }
            yield Example(facts, int(ends if task == "leaving" else is_purchase(end)), session.user_id)


def score_ends(train: Sequence[Example], test: Sequence[Example]) -> dict[str, Score]:
    """What a logistic regression is worth: AUC, and log loss in nats."""
    labels = np.array([example.outcome for example in test])
    if len(set(labels)) < 2:
        raise BadConfig(f"All {len(labels)} test examples have the same outcome: leave that one out of --tasks.")
    both = [*train, Example({}, 0, ""), Example({}, 1, "")]  # so that there are both outcomes
    model = make_pipeline(DictVectorizer(), LogisticRegression(max_iter=300))
    model.fit([example.facts for example in both], [example.outcome for example in both])
    held = model.predict_proba([example.facts for example in test])[:, 1]
    return {"AUC": area(held, labels), "log loss": _mean(-np.log(np.abs(1 - labels - held)))}


def area(held: Floats, labels: Codes) -> Score:
    """The area under the ROC curve; influences by E. DeLong, D. DeLong and D. Clarke-Pearson (1988)."""
    value, influences = float(roc_auc_score(labels, held)), np.zeros(len(held))
    for label in (0, 1):
        own, others = held[labels == label], np.sort(held[labels != label])
        below = sum(np.searchsorted(others, own, side) for side in ("left", "right")) / (2 * len(others))
        influences[labels == label] = ((below if label else 1 - below) - value) / len(own)
    return Score(value, influences)


def score_products(train: Sequence[Example], test: Sequence[Example]) -> dict[str, Score]:
    """What an n-gram model is worth: accuracy, and log loss in nats."""
    model, products = WittenBell(), sorted({example.outcome for example in (*train, *test)})
    for example in train:
        model.add(example.facts, example.outcome)
    held = {facts: model.among(facts, products) for facts in {example.facts for example in test}}
    chosen = [(held[example.facts], products.index(example.outcome)) for example in test]
    right = np.array([float(shares.argmax() == number) for shares, number in chosen])
    return {"accuracy": _mean(right), "log loss": _mean(-np.log([shares[number] for shares, number in chosen]))}


def _mean(values: Floats) -> Score:
    return Score(float(values.mean()), (values - values.mean()) / len(values))


class Options(Record):
    """Trains models on simulated sessions and tests them on people's.

    Attributes:
        store: Whose train split agents learn from, and whose test split models are tested on.
        out: Where the results and the simulated sessions go.
        agents: As of a leaderboard, drawing their actions; the mix is half people's and half the first one's.
        tasks: leaving, purchase, product.
        sessions: So many of train at most, and as many visits.
        tested: So many of test at most.
        seeds: Of the agents' visits, two or more.
    """

    store: Path
    out: Path
    agents: tuple[str, ...] = (f"choice=choice?{FREE}", f"ngram=ngram?{FREE}", *REFERENCES)
    tasks: tuple[Task, ...] = ("leaving", "product")
    sessions: int = 3000
    tested: int = 3000
    seeds: tuple[int, ...] = (0, 1, 2)


def _run(options: Options) -> int:
    whole = SessionStore.open(options.store)
    store = sample_store(whole, options.out, options.sessions, options.tested)
    people, test = list(store.sessions("train")), list(store.sessions("test"))
    graph = LinkGraph(people)
    simulated: dict[str, list[list[Session]]] = {}  # of each agent by seed
    for agent in map(parse_spec, options.agents):
        lazy, folder = LazyAgent(partial(make_agent, agent, store=store)), options.out / "simulated"
        simulated[agent.label] = [
            simulate(lazy, graph, len(people), folder / f"{agent.label}-{seed}", seed) for seed in options.seeds
        ]
    half, first = len(people) // 2, next(iter(simulated.values()))
    mix = [people[:half] + own[half:] for own in first]
    sources = {PEOPLE: [people] * len(options.seeds), **simulated, MIX: mix}
    results = [result for task in options.tasks for result in judge(task, sources, test)]
    config = {
        "agents": options.agents,
        "sessions": options.sessions,
        "tested": options.tested,
        "seeds": options.seeds,
        "tasks": options.tasks,
    }
    record = {
        "expected": EXPECTED,
        "sessions": {"train": len(people), "test": len(test)},
        "steps_per_session": {
            name: np.mean([len(session.steps) for own in seeds for session in own]).item()
            for name, seeds in sources.items()
        },
        "results": results,
        "provenance": provenance(config, store=whole, seed=0),
    }
    table = Table(
        title="Tested on people",
        columns=columns("task", "measure", "trained on", ratio=("value",), signed=("less people's",)),
        rows=[[r.task, r.measure, r.source, r.value, r.difference] for r in results],
        notes=["95% intervals over users (CR2) and seeds. Shuffled: people's facts with the outcomes of others."],
    )
    write_results(options.out, "sim_to_real", record, table.markdown())
    print_results(table)
    return 0


def judge(task: Task, sources: Mapping[str, Sequence[Sequence[Session]]], test: Sequence[Session]) -> Iterator[Result]:
    """The results of a task, by source and measure.

    Args:
        sources: The sessions of each seed, those of people in all seeds the same.
    """
    kinds = frozenset(page_kind(session.steps[-1].page) for session in sources[PEOPLE][0])

    def read(sessions: Sequence[Session]) -> list[Example]:
        return [example for session in sessions for example in examples(session, task, kinds)]

    judged, score = read(test), score_products if task == "product" else score_ends
    users = np.unique([example.user for example in judged], return_inverse=True)[1]
    scores: defaultdict[tuple[str, str], list[Score]] = defaultdict(list)
    with progress_bar(f"training models of {task}", len(sources[PEOPLE]) * (len(sources) + 1), "models") as advance:
        for seed in range(len(sources[PEOPLE])):
            learnt = {name: read(seeds[seed]) for name, seeds in sources.items()}
            outcomes = np.random.default_rng(seed).permutation([example.outcome for example in learnt[PEOPLE]]).tolist()
            learnt[SHUFFLED] = [e._replace(outcome=o) for e, o in zip(learnt[PEOPLE], outcomes, strict=True)]
            for name, own in learnt.items():
                for measure, figure in score(own, judged).items():
                    scores[measure, name].append(figure)
                advance(1)
    for (measure, name), figures in scores.items():
        pairs = zip(figures, scores[measure, PEOPLE], strict=True)
        further = [Score(own.value - best.value, own.influences - best.influences) for own, best in pairs]
        difference = None if name == PEOPLE else pool(further, users)
        yield Result(task=task, measure=measure, source=name, value=pool(figures, users), difference=difference)


def pool(scores: Sequence[Score], users: Codes) -> Estimate:
    """A figure over seeds, each judged on the same people."""
    errors = [error for figure in scores if (error := error_of(figure.influences, users)) is not None]
    pooled = pooled_over_seeds([figure.value for figure in scores], errors, same_users=True)
    return Estimate(pooled.mean, pooled.low, pooled.high)


main = command(Options, _run)

if __name__ == "__main__":
    sys.exit(main())
