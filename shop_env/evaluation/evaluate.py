"""From an agent to records: steps that its file lacks are run; all else follows from the file and the store.

    SessionStore ─► scored_steps.py ─► generate.py ─► StepsFile ─► StepRecord ─► ResultRow ─► Entry (entries.py)

A run that was stopped goes on where it was. Another reward, other metrics, another extraction or fewer sessions run no
agent: the replies are scored again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from replay_sessions.foundation.errors import BadSession
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.store import SessionStore
from shop_env.candidates import candidate_actions
from shop_env.evaluation.generate import format_error, generate, plan_batches
from shop_env.evaluation.protocol import Agent, PromptCut, ServedAgent
from shop_env.evaluation.scored_steps import AnySplit, EvaluationConfig, ScoredStep, StepKey, sessions_at, steps_at
from shop_env.evaluation.steps_file import StepLine, StepsFile, observation_digest
from shop_env.metrics.likelihood import likelihood_of
from shop_env.metrics.step_record import StepRecord, record_step, record_too_long, with_worst_likelihood
from shop_env.observation import ContextConfig, ObservedSession, persona_texts
from shop_env.replies import Extraction, extraction_of
from shop_env.reward.score import RewardConfig

NOT_RUN = "the agent was not run at this step"
NO_PROBABILITIES = "the agent gave probabilities at other steps, and none here"


class LazyAgent:
    """An agent that is built when it is first needed: one whose steps are all there never is."""

    def __init__(self, build: Callable[[], Agent]) -> None:
        self._build = build
        self._agent: Agent | None = None

    def get(self) -> Agent:
        if self._agent is None:
            self._agent = self._build()
        return self._agent

    def close(self) -> list[str]:
        """Ends the agent; returns what a ServedAgent reports of its replies."""
        remarks = self._agent.remarks() if isinstance(self._agent, ServedAgent) else []
        if callable(close := getattr(self._agent, "close", None)):
            close()
        return remarks


def evaluate(
    agent: Agent,
    store: SessionStore,
    split: AnySplit,
    *,
    context: ContextConfig | None = None,
    reward: RewardConfig | None = None,
    extraction: Extraction = "strict",
    seed: int | None = 0,
    skip_first_action: bool = True,
    inferred: bool = False,
    max_sessions: int | None = None,
    session_ids: Collection[str] | None = None,
    batch_size: int = 64,
    likelihood: bool = False,
    progress: str | None = None,
    steps: StepsFile | None = None,
) -> list[StepRecord]:
    """Runs the agent on every scored step of a split; one record per step, in the order of the store.

    A step at which the agent raises is a record with `error`, counted but not scored: a server that is down is no
    wrong answer. A page that is too long for its model (PromptTooLong) is one. Ctrl-C goes through.

    Args:
        context: What of a session is shown; None: the defaults of ContextConfig, which hide the goal.
        reward: How replies are scored; None: the preset `shop_r1`.
        extraction: How an action is read out of a reply (shop_env.replies.parse_reply).
        seed: The run's, from which each step has its own (shop_env.evaluation.generate.step_seed).
        inferred: Score actions too that the log does not hold and the import inferred.
        max_sessions: Only so many sessions of the split, drawn by the seed.
        session_ids: Only these sessions.
        batch_size: Steps in one call of the project's own language models (shop_env.evaluation.generate.plan_batches).
        likelihood: Also get the agent's probabilities, where it gives them.
        progress: The label of the progress bar; None: there is none.
        steps: Where each reply is written as it comes, so that a stopped run need not generate it again; failed steps
            stay failed. None: nowhere.
    """
    config = EvaluationConfig(
        split=split,
        seed=seed or 0,
        sessions=max_sessions,
        context=context or ContextConfig(),
        reward=reward or "shop_r1",
        extraction=extraction,
        first_action=not skip_first_action,
        inferred=inferred,
        batch_size=batch_size,
        likelihood=likelihood,
    )
    keys = config.keys(store, session_ids)
    steps = steps or StepsFile()
    run_missing(
        steps,
        LazyAgent(lambda: agent),
        keys,
        lambda missing: steps_at(store, split, missing, context),
        seed=seed,
        batch_size=batch_size,
        likelihood=likelihood,
        progress=progress,
    )
    return build_records(steps.lines, config, config.context, store, keys)


def run_missing(
    steps: StepsFile,
    agent: LazyAgent,
    keys: Sequence[StepKey],
    read_steps: Callable[[Sequence[StepKey]], Iterable[ScoredStep]],
    *,
    seed: int | None,
    batch_size: int = 64,
    likelihood: bool = False,
    progress: str | None = None,
) -> int:
    """Runs the agent on the steps that its file lacks.

    Args:
        read_steps: The steps of these keys with what the agent sees there.
        likelihood: Get the agent's probabilities too.

    Returns:
        At how many steps the agent was run.
    """
    if all(key in steps.lines for key in keys):
        return 0
    built = agent.get()
    batches = plan_batches(built, keys, batch_size, weighted=likelihood)
    missing = [[key for key in batch if key not in steps.lines] for batch in batches]
    if getattr(built, "reads_whole_sessions", False):
        # A batch that a stop cut in two is run again as a whole: its replies are then, to the last rounding, those of a
        # run which was never stopped.
        missing = [batch if left else left for batch, left in zip(batches, missing, strict=True)]
    wanted = {key for batch in missing for key in batch}
    with progress_bar(progress, len(wanted)) as advance:
        for step, answer in generate(
            built,
            read_steps([key for key in keys if key in wanted]),
            filter(None, missing),
            seed=seed,
            probabilities=likelihood,
        ):
            steps.add(step, answer)
            advance(1)
    return len(wanted)


def build_records(
    lines: Mapping[StepKey, StepLine],
    config: EvaluationConfig,
    context: ContextConfig,
    store: SessionStore,
    keys: Sequence[StepKey],
) -> list[StepRecord]:
    """Returns the records of these steps, in their order: what the replies earn under this configuration.

    Args:
        context: What the agent was shown.

    Raises:
        BadSession: A reply was given to another observation, or the store's content was changed.
    """
    reward, extraction, records = config.reward_config, extraction_of(store, config.extraction), []
    # An agent that gives probabilities at some steps must give them at all, or it would choose what it is judged by.
    weighted = config.likelihood and any(key in lines and lines[key].probabilities is not None for key in keys)
    personas = persona_texts(store, context)
    for session, indices in sessions_at(store, config.split, keys):
        observed = ObservedSession(session, context, personas)
        for index in indices:
            step = ScoredStep(session, index, observed.at(index))
            line = lines.get(step.key)
            if line is not None and line.observation != observation_digest(step.observation):
                raise BadSession(f"the reply to step {index} of session {session.session_id!r} is to another page")
            if line is None:
                records.append(record_step(session, index, None, reward, error=NOT_RUN))
            elif line.is_too_long:
                record = record_too_long(session, index, reward)
                records.append(with_worst_likelihood(record) if weighted else record)
            else:
                record = record_step(session, index, line.reply, reward, extraction=extraction, error=line.error)
                record = _with_likelihood(record, step, line) if weighted and line.error is None else record
                cut = line.cut or PromptCut(False, 0)
                records.append(msgspec.structs.replace(record, page_cut=cut.page, pages_left_out=cut.earlier_pages))
    return records


def _with_likelihood(record: StepRecord, step: ScoredStep, line: StepLine) -> StepRecord:
    """The record with the agent's probability of the logged action, its rank, and the probability of terminating.

    It becomes an error where there are no probabilities, or where they are no distribution.
    """
    error = NO_PROBABILITIES
    if line.probabilities is not None:
        try:
            likelihood = likelihood_of(step.logged, dict(line.probabilities), candidate_actions(step.observation))
            return msgspec.structs.replace(record, **likelihood._asdict())
        except Exception as failure:
            error = format_error(failure)
    nothing = dict.fromkeys(("reply", "predicted", "predicted_rationale", "problem", "reward"))
    return msgspec.structs.replace(record, **nothing, error=error)
