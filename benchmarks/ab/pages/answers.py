"""Runs an agent on the steps that a change touches, on A, B and the placebo, and saves its answers.

    an agent with probabilities     its probabilities, once for each page: they are not subject to chance
    all other agents                replies to each page, drawn with the same seeds on A, B and placebo

Answers are saved as in an evaluation (shop_env/evaluation/steps_file.py): no step is run twice, except that the next
call runs the steps at which an agent failed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import msgspec
import numpy as np
from numpy.typing import NDArray

from agents.agent_identity import gives_probabilities, reply_identity
from agents.registry import make_agent
from benchmarks.ab.pages.config import PagesConfig
from benchmarks.ab.pages.kinds import Distribution, Kinds
from benchmarks.ab.pages.touched import VERSIONS, PageVersion, TouchedSteps
from replay_sessions.elements import page_names
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.evaluation.answering import Reason
from shop_env.evaluation.evaluate import LazyAgent, run_missing
from shop_env.evaluation.results_file import folder_name
from shop_env.evaluation.scored_steps import StepKey
from shop_env.evaluation.steps_file import StepLine, StepsFile, prepare
from shop_env.evaluation.waves import AgentSpec
from shop_env.metrics.clustered_errors import Floats
from shop_env.replies import Extraction, Reply, extraction_of, parse_reply

DRAWS = 5  # default number of replies to each page, for an agent without probabilities
Lines = Mapping[StepKey, StepLine]


class Answers(msgspec.Struct, kw_only=True):
    """An agent's answers at each touched step, as shares of kinds of action.

    Attributes:
        draws: Number of replies to each page; 0 means that the shares are probabilities.
        shares: For each version of the pages the shares of each step, (steps, kinds); NaN where there is no answer.
        first_error: The error of the first step without an answer; None if all were answered.
    """

    draws: int
    shares: dict[PageVersion, Floats]
    first_error: str | None

    @property
    def complete(self) -> NDArray[np.bool_]:
        """A mask of the steps that were answered on every version, (steps,); no metric includes the other steps."""
        complete: NDArray[np.bool_] = np.all(~np.isnan(list(self.shares.values())), axis=(0, 2))
        return complete


def ask_agent(
    spec: AgentSpec, config: PagesConfig, store: SessionStore, touched: TouchedSteps, kinds: Kinds
) -> Answers:
    """Runs an agent on the touched steps that have no saved answer, and returns all of its answers."""
    agent = LazyAgent(lambda: make_agent(spec, store=store, context=config.context))
    weighed = not config.draws and gives_probabilities(spec)

    def answer(version: PageVersion, seed: int) -> Lines:
        """Returns one answer to each step, on a version of its page."""
        path = config.out / "answers" / folder_name(spec.label) / f"{version}-{seed}" / "steps.jsonl"
        identity = reply_identity(spec, config.context, store, seed)
        identity |= {"pages": touched.digests[version], "likelihood": weighed}
        prepare(path, identity, {}, fresh=False, retry_errors=True)
        with StepsFile(path) as steps:
            run_missing(
                steps,
                agent,
                touched.keys,
                partial(touched.steps, version),
                seed=seed,
                likelihood=weighed,
                progress=f"{spec.label}, {version}",
            )
            return steps.lines

    def run(draw: int) -> dict[PageVersion, Lines]:
        return {version: answer(version, config.seed + draw) for version in VERSIONS}

    try:
        drawn = [run(0)]
        if weighed and any(line.probabilities is not None for lines in drawn[0].values() for line in lines.values()):
            draws = 0
        else:
            draws = config.draws or DRAWS
            drawn += [run(draw) for draw in range(1, draws)]
    finally:
        agent.close()
    shares, first_error = {}, None
    for version in VERSIONS:
        rows = []
        for step in touched.steps(version):
            lines = [of_draw[version][step.key] for of_draw in drawn]
            shares_of = _distribution(lines, extraction_of(store, config.extraction), weighed=not draws)
            if isinstance(shares_of, str):
                first_error = first_error or shares_of
                rows.append(np.full(len(kinds.labels), np.nan))
            else:
                rows.append(kinds.shares(shares_of, page_names(step.observation["page"])))
        shares[version] = np.array(rows)
    return Answers(draws=draws, shares=shares, first_error=first_error)


def _distribution(lines: Sequence[StepLine], extraction: Extraction, *, weighed: bool) -> Distribution | str:
    """Returns the share of each action in the answers to a step, or an error message."""
    for line in lines:
        if line.error is not None:
            return line.error
    if weighed:
        probabilities = lines[0].probabilities
        return Reason.NO_PROBABILITIES.sentence if probabilities is None else dict(probabilities)
    actions = Counter(_actions(lines, extraction))
    return {action: count / len(lines) for action, count in actions.items()}


def _actions(lines: Sequence[StepLine], extraction: Extraction) -> Iterator[Action | None]:
    for line in lines:
        reply = parse_reply(line.reply or "", extraction)
        yield reply.action if isinstance(reply, Reply) else None
