"""Runs an agent over a split and records what it answered: the one way from an agent to figures.

    SessionStore ─► scored_steps ─► agent ─► reply ─► reward ─► StepRecord ─► agents/results.py, shop_env.metrics

The logged page never depends on the agent's action (a replay shows what the shopper saw, whatever the agent answered).
So no step waits for the reply to the one before it, and a batch may mix steps of many sessions.

The first action of a session is not scored unless told: every session begins on the home page, so the papers count one
page-action pair as known (Shop-R1, section 4.1; OPeRA).
"""

import hashlib
import itertools
import logging
from collections.abc import Collection, Iterable, Iterator
from typing import Literal, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import agents
from agents.protocol import Agent, BatchAgent
from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action, Session, Split
from replay_sessions.store import SessionStore
from shop_env.context import ContextConfig
from shop_env.metrics.records import StepRecord, record_step
from shop_env.observation import Observation, observe_session
from shop_env.personas import persona_texts
from shop_env.reward.presets import reward_preset
from shop_env.reward.score import RewardConfig

if getattr(agents, "__project__", None) != "shop-r1":
    raise ImportError(
        f"The package 'agents' that was loaded ({agents.__file__}) is not shop-r1's. The distribution 'openai-agents' "
        "installs a package of the same name: remove it from this environment, or use an environment of its own."
    )

__all__ = [
    "ScoredStep",
    "ask",
    "ask_all",
    "error_in_words",
    "evaluate",
    "progress_bar",
    "scored_steps",
    "session_seed",
]

logger = logging.getLogger(__name__)


class ScoredStep(NamedTuple):
    """One step that an agent is asked about."""

    session: Session
    step_index: int
    observation: Observation

    @property
    def logged(self) -> Action:
        return self.session.steps[self.step_index].action


Answer = str | Exception


def evaluate(
    agent: Agent,
    store: SessionStore,
    split: Split | Literal["all"],
    *,
    context: ContextConfig | None = None,
    reward: RewardConfig | None = None,
    seed: int | None = 0,
    skip_first_action: bool = True,
    max_sessions: int | None = None,
    session_ids: Collection[str] | None = None,
    batch_size: int = 64,
    progress: str | None = None,
) -> list[StepRecord]:
    """Asks the agent about every scored step of a split; one record per step, in the order of the store.

    A step at which the agent raises is a record with `error`, counted but not scored: a server that is down is no
    wrong answer. Ctrl-C goes through.

    Args:
        context: What of a session is shown; None: all of it.
        reward: How replies are scored; None: the preset `shop_r1`.
        seed: The run's; an Agent is reset before each session with `session_seed`, a BatchAgent once.
        max_sessions: Only the first so many sessions of the split.
        session_ids: Only these sessions.
        batch_size: Steps in one `act_batch`.
        progress: What to call the run on the progress bar; None: no bar. Shown only on a terminal.
    """
    reward = reward_preset("shop_r1") if reward is None else reward
    chosen = _chosen_sessions(store, split, max_sessions, session_ids)
    steps = _steps_of(store, split, chosen, context or ContextConfig(), skip_first_action)
    if isinstance(agent, BatchAgent):
        agent.reset(seed=seed)
        answers = _answer_in_batches(agent, steps, batch_size)
    else:
        answers = _answer_one_by_one(agent, steps, seed)
    records: list[StepRecord] = []
    with progress_bar(progress) as bar:
        task = bar.add_task(progress or "", total=len(chosen))
        done: set[str] = set()
        for step, answer in answers:
            records.append(_record(step, answer, reward))
            if step.session.session_id not in done:
                done.add(step.session.session_id)
                bar.update(task, completed=len(done))
    if not records:
        raise BadConfig(
            f"Split '{split}' of store '{store.path}' has no step to score: each session has one step, and the first "
            "action is scored only when asked for"
        )
    return records


def scored_steps(
    store: SessionStore,
    split: Split | Literal["all"],
    *,
    context: ContextConfig | None = None,
    skip_first_action: bool = True,
    max_sessions: int | None = None,
    session_ids: Collection[str] | None = None,
) -> Iterator[ScoredStep]:
    """The steps that `evaluate` asks about, in the same order."""
    chosen = _chosen_sessions(store, split, max_sessions, session_ids)
    return _steps_of(store, split, chosen, context or ContextConfig(), skip_first_action)


def session_seed(seed: int | None, session_id: str) -> int | None:
    """The seed of one session: the same whatever other sessions are run, and in which order."""
    if seed is None:
        return None
    digest = hashlib.blake2b(f"{seed}:{session_id}".encode(), digest_size=4)
    return int.from_bytes(digest.digest(), "big")


def _chosen_sessions(
    store: SessionStore, split: Split | Literal["all"], max_sessions: int | None, session_ids: Collection[str] | None
) -> list[str]:
    chosen = store.session_ids(split)[:max_sessions]
    if session_ids is not None:
        wanted = set(session_ids)
        chosen = [session_id for session_id in chosen if session_id in wanted]
    if not chosen:
        raise BadConfig(f"Split '{split}' of store '{store.path}' holds no session to evaluate")
    return chosen


def _steps_of(
    store: SessionStore,
    split: Split | Literal["all"],
    session_ids: Collection[str],
    context: ContextConfig,
    skip_first_action: bool,
) -> Iterator[ScoredStep]:
    remaining = set(session_ids)
    personas = persona_texts(store, context)
    for session in store.sessions(split):
        if session.session_id not in remaining:
            continue
        for index, observation in enumerate(observe_session(session, context, personas)):
            if index > 0 or not skip_first_action:
                yield ScoredStep(session, index, observation)
        remaining.remove(session.session_id)
        if not remaining:
            return


def _answer_one_by_one(
    agent: Agent, steps: Iterable[ScoredStep], seed: int | None
) -> Iterator[tuple[ScoredStep, Answer]]:
    for session_id, of_session in itertools.groupby(steps, key=lambda step: step.session.session_id):
        failed_reset = _try_reset(agent, session_seed(seed, session_id))
        for step in of_session:
            yield step, failed_reset or ask(agent, step.observation)


def _answer_in_batches(
    agent: BatchAgent, steps: Iterable[ScoredStep], batch_size: int
) -> Iterator[tuple[ScoredStep, Answer]]:
    remaining = iter(steps)
    while batch := list(itertools.islice(remaining, batch_size)):
        yield from zip(batch, ask_all(agent, [step.observation for step in batch]), strict=True)


def _try_reset(agent: Agent, seed: int | None) -> Exception | None:
    try:
        agent.reset(seed=seed)
    except Exception as error:
        return error
    return None


def ask(agent: Agent, observation: Observation) -> Answer:
    """The reply to one observation, or what the agent raised."""
    try:
        reply: object = agent.act(observation)
    except Exception as error:
        logger.debug("an agent failed at step %d", observation["step"], exc_info=True)
        return error
    return (
        reply if isinstance(reply, str) else TypeError(f"act returned {type(reply).__name__}, not the text of a reply")
    )


def ask_all(agent: BatchAgent, observations: list[Observation]) -> list[Answer]:
    """The replies to a batch; where it fails as a whole each step is asked alone, so one bad page costs one step."""
    try:
        replies: list[object] = list(agent.act_batch(observations))
        if len(replies) == len(observations) and all(isinstance(reply, str) for reply in replies):
            return replies  # type: ignore[return-value]  # all are str
    except Exception:
        logger.debug("an agent failed on a batch of %d steps", len(observations), exc_info=True)
    return [ask(agent, observation) for observation in observations]


def _record(step: ScoredStep, answer: Answer, reward: RewardConfig) -> StepRecord:
    if isinstance(answer, Exception):
        return record_step(step.session, step.step_index, None, reward, error=error_in_words(answer))
    return record_step(step.session, step.step_index, answer, reward)


def error_in_words(error: Exception) -> str:
    """What a record keeps of an exception."""
    return f"{type(error).__name__}: {error}"[:500]


def progress_bar(label: str | None) -> Progress:
    """A bar that counts sessions on a terminal; without a label, or elsewhere, it shows nothing."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("sessions"),
        TimeRemainingColumn(),
        console=console,
        disable=label is None or not console.is_terminal,
        transient=True,
    )
