"""Train on simulated sessions, test on people's: what an agent's sessions are worth beside people's own.

  python -m benchmarks.studies.real_shoppers.sim_to_real \\
    --store stores/dated --out runs/sim_to_real
  python -m benchmarks.studies.real_shoppers.sim_to_real \\
    --store stores/merchandise --tasks leaving purchase product \\
    --out runs/sim_to_real_merchandise

Agents learn from people's sessions of the train split, then walk freely
through the pages of the log, as many visits as these people made. The same
models (predictors.py) are trained on people's sessions, on each agent's, on
half of each (mix), on people's with shuffled outcomes, and tested on people of
the test split. Leaves sim_to_real.json and sim_to_real.md in OUT; killed, it
goes on where it was.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from agents.registry import make_agent, parse_spec
from benchmarks.studies.real_shoppers.logged_shop import LinkGraph, is_purchase, simulate
from benchmarks.studies.real_shoppers.logit import error_of
from benchmarks.studies.real_shoppers.predictors import Kinds, Score, Task, examples, kinds_of_ends, score, viewed
from benchmarks.studies.real_shoppers.samples import sample_store
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Estimate, Table, columns, print_results
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import LazyAgent
from shop_env.evaluation.log import folder_name
from shop_env.metrics.statistics import MIN_CLUSTERS, Codes, pooled_over_seeds

EXPECTED = """\
Leaving: a model trained on choice's sessions has an AUC within 0.03 of one trained on people's, ngram's within 0.05,
for both know how visits end; popularity's and uniform's are near 0.5, as they leave with the same chance always. Next
product: people's sessions are better than every agent's, by 2 points of accuracy or more, since agents know listings
rather than products; choice is nearest. The mix lies between people and choice. With 28 purchases no difference in the
purchase model is significant."""
REFERENCES = "benchmarks.studies.real_shoppers.references"
AGENTS = (
    "choice=choice?temperature=1&skip_first_action=false",
    "ngram=ngram?temperature=1&skip_first_action=false",
    f"popularity={REFERENCES}:Popularity",
    f"uniform={REFERENCES}:Uniform",
)
PEOPLE, SHUFFLED, MIX = "people", "people, shuffled", "mix"


class SimToReal(Record):
    """Trains models on simulated sessions and tests them on people's.

    Attributes:
        store: Whose train split agents learn from, and whose test split models are tested on.
        out: Where the results and the simulated sessions go.
        agents: As of a leaderboard, drawing their actions; the mix is half people's and half the first one's.
        tasks: leaving, purchase, product.
        sessions: So many of train and of test at most, and as many visits.
        seeds: Of the agents' visits.
    """

    store: Path
    out: Path
    agents: tuple[str, ...] = AGENTS
    tasks: tuple[Task, ...] = ("leaving", "product")
    sessions: int = 3000
    seeds: tuple[int, ...] = (0, 1, 2)

    def __post_init__(self) -> None:
        check_at_least(MIN_CLUSTERS, sessions=self.sessions)
        if len(self.seeds) < 2 or not self.agents:
            raise BadConfig("--seeds takes two seeds or more, and --agents an agent or more.")


class Source(Record):
    """The sessions that models were trained on: how long they are, and how many end in a purchase, over seeds."""

    steps_per_session: float
    purchases: float


class Result(Record):
    """What a model is worth on people, over seeds, and how far it is from one that was trained on people's sessions."""

    task: Task
    measure: str
    source: str
    value: Estimate
    difference: Estimate | None


def _run(options: SimToReal) -> int:
    whole = SessionStore.open(options.store)
    store = sample_store(whole, options.out, options.sessions, seed=0)
    people, test = list(store.sessions("train")), list(store.sessions("test"))
    graph, kinds = LinkGraph(people), kinds_of_ends(people)
    agents = {
        agent.label: LazyAgent(partial(make_agent, agent, store=store)) for agent in map(parse_spec, options.agents)
    }
    by_seed = []
    for seed in options.seeds:
        sources = {PEOPLE: people}
        for label, agent in agents.items():
            name = f"{folder_name(label)}-{seed}"
            sources[label] = simulate(agent, graph, len(people), options.out / "simulated" / name, seed)
        half = len(people) // 2
        sources[MIX] = people[:half] + sources[next(iter(agents))][half:]
        by_seed.append(sources)
    results = [result for task in options.tasks for result in judge(task, by_seed, options.seeds, test, kinds)]
    described = {name: describe([sources[name] for sources in by_seed]) for name in by_seed[0]}
    record = {
        "expected": EXPECTED,
        "sessions": {"train": len(people), "test": len(test)},
        "sources": described,
        "results": results,
        "provenance": provenance(msgspec.to_builtins(options, enc_hook=str), store=whole, seed=0),
    }
    tables = build_tables(results, described)
    write_results(options.out, "sim_to_real", record, "\n".join(table.markdown() for table in tables))
    print_results(*tables)
    return 0


def judge(
    task: Task,
    by_seed: Sequence[Mapping[str, Sequence[Session]]],
    seeds: Sequence[int],
    test: Sequence[Session],
    kinds: Kinds,
) -> Iterator[Result]:
    """The results of a task, of each seed's sources and of people's sessions with shuffled outcomes.

    Args:
        by_seed: The sessions of each source, those of people in all seeds the same.
    """
    judged = examples(test, task, kinds)
    users = np.unique([example.user for example in judged], return_inverse=True)[1]
    every = [*test, *(session for sources in by_seed for sessions in sources.values() for session in sessions)]
    products = sorted({viewed(step.action) for session in every for step in session.steps} - {""})
    scores: defaultdict[tuple[str, str], list[Score]] = defaultdict(list)
    total = len(by_seed) * (len(by_seed[0]) + 1)
    with progress_bar(f"training models of {task}", total, "models") as advance:
        for seed, sources in zip(seeds, by_seed, strict=True):
            learnt = {name: examples(sessions, task, kinds) for name, sessions in sources.items()}
            order = np.random.default_rng(seed).permutation(len(learnt[PEOPLE]))
            learnt[SHUFFLED] = [
                example._replace(outcome=learnt[PEOPLE][other].outcome)
                for example, other in zip(learnt[PEOPLE], order, strict=True)
            ]
            for name, own in learnt.items():
                for measure, figure in score(task, own, judged, products).items():
                    scores[measure, name].append(figure)
                advance(1)
    for (measure, name), figures in scores.items():
        best = scores[measure, PEOPLE]
        nearer = [Score(a.value - b.value, a.influences - b.influences) for a, b in zip(figures, best, strict=True)]
        difference = None if name == PEOPLE else pool(nearer, users)
        yield Result(task=task, measure=measure, source=name, value=pool(figures, users), difference=difference)


def pool(scores: Sequence[Score], users: Codes) -> Estimate:
    """A figure over seeds, each judged on the same people."""
    errors = [error for figure in scores if (error := error_of(figure.influences, users)) is not None]
    pooled = pooled_over_seeds([figure.value for figure in scores], errors, same_users=True)
    return Estimate(pooled.mean, pooled.low, pooled.high)


def describe(seeds: Sequence[Sequence[Session]]) -> Source:
    """The sessions of a source, of all seeds."""
    sessions = [session for own in seeds for session in own]
    return Source(
        steps_per_session=sum(len(session.steps) for session in sessions) / len(sessions),
        purchases=sum(is_purchase(session.steps[-1].action) for session in sessions) / len(seeds),
    )


def build_tables(results: Sequence[Result], sources: Mapping[str, Source]) -> list[Table]:
    """What models are worth, and what the sessions were like that they were trained on."""
    return [
        Table(
            title="Tested on people",
            columns=columns("task", "measure", "trained on", ratio=("value",), signed=("less people",)),
            rows=[[r.task, r.measure, r.source, r.value, r.difference] for r in results],
            notes=["95% intervals over users (CR2) and seeds. Shuffled: people's facts with the outcomes of others."],
        ),
        Table(
            title="Sessions",
            columns=columns("source", ratio=("steps a session",), count=("purchases",)),
            rows=[[name, source.steps_per_session, source.purchases] for name, source in sources.items()],
        ),
    ]


main = command(SimToReal, _run)

if __name__ == "__main__":
    sys.exit(main())
