"""An agent of an evaluation: its missing replies are generated, its state is looked for, its row is computed.

AgentToEvaluate ─► fill_entry_cache (evaluate.py) ─► ReplyCache ─► check_order ─► build_entry ─► Entry (log.py)
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, NamedTuple

import msgspec
import numpy as np

from replay_sessions.foundation.table import Estimate
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import LazyAgent, build_records, fill_cache
from shop_env.evaluation.generate import AgentSpec, Generated, batched, generate, plan_batches
from shop_env.evaluation.log import SANDBOXED, AgentFiles, Entry, EvaluationLog, Process, records_digest
from shop_env.evaluation.protocol import Agent, ServedAgent
from shop_env.evaluation.reply_cache import Identity, ReplyCache
from shop_env.evaluation.results import MOSTLY_ONE, OrderCheck, dominant_type, summarise
from shop_env.evaluation.scored_steps import EvaluationConfig, ScoredStep, StepKey, steps_at
from shop_env.metrics.calibration import calibration_of
from shop_env.metrics.likelihood import checked_distribution
from shop_env.metrics.step_record import StepRecord
from shop_env.observation import ContextConfig

ORDER_CHECK = 32  # steps
ORDER_CHECK_BATCH = 5
RETRIED, MERGED = "after failures: ", "some of its replies were merged"  # how remarks begin


@dataclass(frozen=True, kw_only=True)
class AgentToEvaluate:
    """An agent of an evaluation.

    Attributes:
        spec: As the log names it.
        name: Of its folder.
        build: Makes the agent.
        folder: Of the evaluation.
        probabilities: Whether it may give them.
        process: Whose process it runs in.
        order_check: At how many steps it is run again in another order, to find replies that follow from more than the
            observation.
    """

    spec: AgentSpec
    name: str
    context: ContextConfig
    identity: Identity
    build: Callable[[], Agent]
    config: EvaluationConfig
    store: SessionStore
    folder: Path
    probabilities: bool = False
    process: Process = "evaluator's"
    order_check: int = 0

    @property
    def files(self) -> AgentFiles:
        return AgentFiles.of(self.folder, self.name)

    @property
    def replies(self) -> Path:
        """The file of its replies."""
        return self.files.replies(self.identity)


class FilledCache(NamedTuple):
    """What running an agent brought beside its replies: at how many steps it was run, and what it reports."""

    new_steps: int
    remarks: Sequence[str] = ()


def fill_entry_cache(
    agent: AgentToEvaluate,
    keys: Sequence[StepKey],
    *,
    part: int | None = None,
    retry_errors: bool = True,
    fresh: bool = False,
    progress: bool = True,
) -> FilledCache:
    """Runs an agent of an evaluation on the steps that its cache lacks.

    Args:
        keys: The evaluation's steps; of several processes those of this one.
        part: This process's number where several share the work (reply_cache.py).
    """
    lazy, config = LazyAgent(agent.build), agent.config
    with ReplyCache(agent.replies, agent.identity, part=part) as cache:
        new_steps = fill_cache(
            cache,
            lazy,
            keys,
            lambda missing: steps_at(agent.store, config.split, missing, agent.context),
            seed=config.seed,
            batch_size=config.batch_size,
            probabilities=config.likelihood and agent.probabilities,
            retry_errors=retry_errors,
            fresh=fresh,
            progress=agent.spec.label if progress else None,
        )
        return FilledCache(new_steps, lazy.close())


def check_order(agent: AgentToEvaluate, keys: Sequence[StepKey], cache: ReplyCache) -> OrderCheck:
    """Runs the agent again at one step of each of some sessions, last session first, in small batches.

    An agent whose replies follow from the observation and the seed gives the same ones.
    """
    replied = [key for key in keys if cache.reply(key) is not None]
    seed = SystemRandom().getrandbits(32)  # an agent that knew the sample could behave there alone
    by_session = {key[0]: key for key in Random(seed).sample(replied, len(replied))}
    chosen = set(list(by_session.values())[: agent.order_check])
    steps = list(steps_at(agent.store, agent.config.split, chosen, agent.context))[::-1]
    differing = run_again(LazyAgent(agent.build), steps, cache, agent.config, size=ORDER_CHECK_BATCH)
    different = [generated.step.key for generated in differing]
    return OrderCheck(steps=len(steps), different=len(different), first=min(different, default=None), seed=seed)


def run_again(
    lazy: LazyAgent, steps: Sequence[ScoredStep], cache: ReplyCache, config: EvaluationConfig, *, size: int = 0
) -> Iterator[Generated]:
    """Runs an agent that was built anew; what it gives where that is not what is cached.

    Args:
        size: The most in a batch; 0: as in an evaluation.
    """
    if not steps:
        return
    agent, keys = lazy.get(), [step.key for step in steps]
    if isinstance(agent, ServedAgent):
        agent.ask_anew()
    weighted = {key for key in keys if cache.probabilities(key) is not None}
    batches = plan_batches(agent, keys, config.batch_size, weighted=bool(weighted))
    if size:
        batches = [part for batch in batches for part in batched(batch, size)]
    for generated in generate(agent, steps, batches, seed=config.seed, probabilities=weighted):
        if not _is_cached(generated, cache):
            yield generated
    lazy.close()


def _is_cached(generated: Generated, cache: ReplyCache) -> bool:
    key, probabilities = generated.step.key, generated.probabilities
    if generated.reply != cache.reply(key) or isinstance(probabilities, Exception):
        return False
    cached = cache.probabilities(key)
    if cached is None or probabilities is None:
        return cached is probabilities
    return cached.keys() == probabilities.keys() and all(
        math.isclose(cached[action], probabilities[action], rel_tol=1e-4, abs_tol=1e-6) for action in cached
    )


def build_entry(
    agent: AgentToEvaluate, filled: FilledCache, earlier: Sequence[Entry] = ()
) -> tuple[Entry, list[StepRecord]]:
    """Scores the cached replies, writes the records, and computes the row.

    Args:
        earlier: Of the folder's log. An order check holds for the records that it was made with: after a run that was
            killed before its check, the next one makes it.
    """
    files, config = agent.files, agent.config
    keys = config.keys(agent.store)
    with ReplyCache(agent.replies, agent.identity) as cache:
        records = build_records(cache, config, agent.context, agent.store, keys)
        files.write(records)
        order_check = None
        if agent.order_check:
            made_with = (agent.identity, records_digest(records))
            checks = [e.order_check for e in earlier if (e.identity, e.records_digest) == made_with]
            order_check = next(filter(None, checks), None) or check_order(agent, keys, cache)
        entry = Entry(
            spec=agent.spec,
            context=agent.context,
            records=files.steps.relative_to(agent.folder).as_posix(),
            identity=agent.identity,
            new_steps=filled.new_steps,
            process=agent.process,
            order_check=order_check,
            **computed_fields(agent.spec, records, cache, config, order_check, filled.remarks),
        )
    return entry, records


def computed_fields(
    spec: AgentSpec,
    records: Sequence[StepRecord],
    cache: ReplyCache,
    config: EvaluationConfig,
    order_check: OrderCheck | None,
    remarks: Sequence[str],
) -> dict[str, Any]:
    """Everything of an entry that follows from its records and cached replies; verify computes it anew.

    Args:
        remarks: The agent's own.
    """
    keys = [record.key for record in records]
    row = summarise(records, label=spec.label, preset=config.metrics, cluster=config.cluster, order_check=order_check)
    row = msgspec.structs.replace(row, figures=row.figures | _calibration_figures(records, cache))
    dominant = dominant_type(records)
    computed = [dominant.sentence] if dominant else []
    # Between two runs an agent can leave itself notes, unless it is sandboxed.
    if cache.identity.get("process", SANDBOXED) != SANDBOXED and (
        retried := sum(cache.reply(key) is not None for key in cache.failed.intersection(keys))
    ):
        computed.append(f"{RETRIED}{retried} replies came when their steps, or others with them, were run again")
    if any(run.get("merged") for run in cache.runs(keys)):
        computed.append(f"{MERGED} from another machine's folder: only a rerun can tell whose they are")
    own = [remark for remark in remarks if not remark.startswith((MOSTLY_ONE, RETRIED, MERGED))]
    return {
        "row": row,
        "records_digest": records_digest(records),
        "runs": cache.runs(keys),
        "time_s": round(cache.seconds(keys), 6),
        "remarks": [*own, *computed],
    }


def _calibration_figures(records: Sequence[StepRecord], cache: ReplyCache) -> dict[str, Estimate]:
    """ECE and Brier score over all that the agent names; what it does not name, with probability 0, adds nothing."""
    shares = []
    for record in records:
        distribution = None if record.logged_probability is None else cache.probabilities(record.key)
        if distribution is not None:  # the logged action first
            by_action = {tuple(record.logged.values()): 0.0} | checked_distribution(distribution)
            shares.append(np.array(list(by_action.values())))
    calibration = calibration_of(shares, [0] * len(shares)) if shares else None
    if calibration is None:
        return {}
    return {"calibration_error": Estimate(calibration.error), "brier": Estimate(calibration.brier)}


def remarks_of(log: EvaluationLog) -> list[str]:
    """What a reader should know of the agents, a line each."""
    remarks = [f"{entry.label}: {remark}" for entry in log.entries for remark in entry.remarks]
    if log.config.split in ("train", "all"):
        remarks.append(f"split {log.config.split} holds sessions that agents may have learnt from")
    best = log.ceilings[0].figures if log.ceilings else {}
    for entry in log.entries:
        if entry.row.caveat is not None:
            remarks.append(f"{entry.label}: not ranked: {entry.row.caveat}")
        beyond = [
            f"{name} {best[name].value:.3f}{' (by chance, perhaps: no interval)' if figure.low is None else ''}"
            for name in ("exact_accuracy", "top1_accuracy", "nll")
            if (figure := entry.row.figures.get(name)) and name in best and _is_beyond(figure, best[name].value, name)
        ]
        if beyond:
            remarks.append(
                f"{entry.label}: beyond the ceiling, the best that can be known from the observation: "
                f"{', '.join(beyond)}. Look for the answers in what it learnt from"
            )
        if log.processes.get(entry.label) == "evaluator's":
            remarks.append(f"{entry.label}: ran in the evaluator's process, where code can read the logged actions")
        if entry.process != "evaluator's" and entry.order_check is None:
            remarks.append(f"{entry.label}: whether it depends on more than the observation was not checked")
    return remarks


def _is_beyond(figure: Estimate, ceiling: float, name: str) -> bool:
    """Whether the interval is better than the ceiling, or the value where there is none (few users, or all alike)."""
    low, high = figure.low, figure.high
    if name == "nll":
        return (figure.value if high is None else high) < ceiling
    return (figure.value if low is None else low) > ceiling
