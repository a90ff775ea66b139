"""Runs an agent on the steps that its file lacks, and builds records from the file and the store.

    SessionStore ─► scored_steps.py ─► waves.py ─► StepsFile ─► StepRecord ─► ResultRow ─► Entry (entries.py)

A stopped run continues from its file. With another reward, other metrics, another extraction or fewer sessions no agent
runs: the replies in the file are scored again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from replay_sessions.foundation.errors import BadSession
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.candidates import candidate_actions
from shop_env.evaluation.answering import AnsweringAgent, Reason, adapt_agent, format_error
from shop_env.evaluation.protocol import Agent, PromptCut
from shop_env.evaluation.scored_steps import AnySplit, EvaluationConfig, ScoredStep, StepKey, sessions_at, steps_at
from shop_env.evaluation.steps_file import StepLine, StepsFile, observation_digest
from shop_env.evaluation.waves import generate, plan_batches
from shop_env.marks import remove_marks
from shop_env.metrics.likelihood import likelihood_of
from shop_env.metrics.step_record import StepRecord, record_step, record_too_long, with_worst_likelihood
from shop_env.observation import ContextConfig, ObservedSession, persona_texts
from shop_env.page_budget import shows_target
from shop_env.replies import Extraction, extraction_of
from shop_env.reward.score import RewardConfig


class LazyAgent:
    """An agent that is built when it is first needed, and never if no step is missing."""

    def __init__(self, build: Callable[[], Agent]) -> None:
        self._build = build
        self._agent: AnsweringAgent | None = None

    def get(self) -> AnsweringAgent:
        if self._agent is None:
            self._agent = adapt_agent(self._build())
        return self._agent

    def close(self) -> list[str]:
        """Closes the agent; returns its remarks, if it has any."""
        if self._agent is None:
            return []
        remarks = self._agent.remarks()
        self._agent.close()
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
    first_action: bool = False,
    inferred: bool = False,
    sessions: int | None = None,
    session_ids: Collection[str] | None = None,
    batch_size: int = 64,
    likelihood: bool = False,
    progress: str | None = None,
    steps: StepsFile | None = None,
) -> list[StepRecord]:
    """Runs the agent on every scored step of a split; returns a record for each step, in the order of the store.

    A step at which the agent raises becomes a record with `error`, which is counted but not scored, because a failing
    server is not a wrong answer. A prompt that is too long for its model (PromptTooLong) counts as wrong. Ctrl-C is not
    caught.

    Args:
        context: How much of a session is shown; None means the defaults of ContextConfig, which hide the goal.
        reward: How replies are scored; None means the preset `shop_r1`.
        extraction: How an action is read from a reply (shop_env.replies.parse_reply).
        seed: The seed of the run, from which each step's seed is derived (shop_env.evaluation.waves.step_seed).
        first_action: Whether the first action of each session is scored too; in the papers it is not.
        inferred: Whether inferred actions, which the import added to the log, are scored too.
        sessions: Number of sessions of the split to draw with the seed; None means all.
        session_ids: Evaluates only these sessions; None means all that are drawn.
        batch_size: Steps in one call of an agent that reads whole sessions (shop_env.evaluation.waves.plan_batches).
        likelihood: Whether to get the agent's probabilities too, if it gives them.
        progress: The label of the progress bar; None means no bar.
        steps: The file to which each reply is written at once, so that a stopped run need not generate it again; failed
            steps in it stay failed. None means no file.
    """
    config = EvaluationConfig(
        split=split,
        seed=seed or 0,
        sessions=sessions,
        context=context or ContextConfig(),
        reward=reward or "shop_r1",
        extraction=extraction,
        first_action=first_action,
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
        keys: The steps of the evaluation.
        read_steps: Returns the steps of the given keys with their observations, in the order of the keys.
        seed: The seed of the run; None leaves the steps without seeds.
        likelihood: Whether to get the agent's probabilities too.
        progress: The label of the progress bar; None means no bar.

    Returns:
        The number of steps at which the agent was run.
    """
    if all(key in steps.lines for key in keys):
        return 0
    built = agent.get()
    batches = plan_batches(built, keys, batch_size)
    missing = [[key for key in batch if key not in steps.lines] for batch in batches]
    if built.reads_whole_sessions:
        # A batch that was stopped in the middle is run again completely: its replies are then, to the last bit, those
        # of a run without a stop.
        missing = [batch if left else left for batch, left in zip(batches, missing, strict=True)]
    keys_to_run = {key for batch in missing for key in batch}
    with progress_bar(progress, len(keys_to_run)) as advance:
        for step, answer in generate(
            built,
            read_steps([key for key in keys if key in keys_to_run]),
            filter(None, missing),
            seed=seed,
            probabilities=likelihood,
        ):
            steps.add(step, answer)
            advance(1)
    return len(keys_to_run)


def build_records(
    lines: Mapping[StepKey, StepLine],
    config: EvaluationConfig,
    context: ContextConfig,
    store: SessionStore,
    keys: Sequence[StepKey],
) -> list[StepRecord]:
    """Builds the records of these steps, in order, with the rewards of this configuration.

    Args:
        lines: The agent's answers by step.
        context: How much of a session the agent was shown.
        keys: The steps.

    Raises:
        BadSession: A reply is to another observation, or the store's content was changed.
    """
    reward, extraction, records = config.reward_config, extraction_of(store, config.extraction), []
    # An agent that gives probabilities at some steps must give them at all, or it could choose the steps that count.
    weighted = config.likelihood and any(key in lines and lines[key].probabilities is not None for key in keys)
    reports_windows = any(line.cut is not None and line.cut.window is not None for line in lines.values())
    personas = persona_texts(store, context)
    for session, indices in sessions_at(store, config.split, keys):
        observed = ObservedSession(session, context, personas)
        for index in indices:
            step = ScoredStep(session, index, observed.at(index))
            line = lines.get(step.key)
            if line is not None and line.observation != observation_digest(step.observation):
                raise BadSession(f"the reply to step {index} of session {session.session_id!r} is to another page")
            if line is None:
                records.append(record_step(session, index, None, reward, error=Reason.NOT_RUN.sentence))
            elif line.is_too_long:
                record = record_too_long(session, index, reward)
                records.append(with_worst_likelihood(record) if weighted else record)
            else:
                record = record_step(session, index, line.reply, reward, extraction=extraction, error=line.error)
                if weighted and line.error is None:
                    offered = candidate_actions(step.observation, scrolls=store.scrolls)
                    record = _with_likelihood(record, step, line, offered)
                cut = line.cut or PromptCut(False, 0)
                records.append(msgspec.structs.replace(record, page_cut=cut.page, pages_left_out=cut.earlier_pages))
            if line is not None and reports_windows:
                shown = _shows_target(step, line)
                records[-1] = msgspec.structs.replace(records[-1], target_shown=shown)
    return records


def _shows_target(step: ScoredStep, line: StepLine) -> bool | None:
    """Returns whether the agent read the element of the logged action; None if its window is unknown."""
    cut = PromptCut(True, 0, (0, 0)) if line.is_too_long else line.cut or PromptCut(False, 0)
    if cut.page and cut.window is None:
        return None
    return shows_target(remove_marks(step.observation["page"]), cut.window, step.logged)


def _with_likelihood(record: StepRecord, step: ScoredStep, line: StepLine, offered: Sequence[Action]) -> StepRecord:
    """Adds the likelihood fields to a record; without probabilities that form a distribution it becomes an error."""
    error = Reason.NO_PROBABILITIES.sentence
    if line.probabilities is not None:
        try:
            likelihood = likelihood_of(step.logged, dict(line.probabilities), offered)
            return msgspec.structs.replace(record, **likelihood._asdict())
        except Exception as failure:
            error = format_error(failure)
    nothing = dict.fromkeys(("reply", "predicted", "predicted_rationale", "problem", "reward"))
    return msgspec.structs.replace(record, **nothing, error=error)
