"""The steps that an evaluation scores, and an agent's replies to them, for tests."""

from collections.abc import Iterable, Iterator

from replay_sessions.store import SessionStore
from shop_env.evaluation.answering import NoReply, adapt_agent
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.scored_steps import AnySplit, EvaluationConfig, ScoredStep, steps_at
from shop_env.evaluation.waves import generate, plan_batches
from shop_env.observation import ContextConfig, Observation

GOAL_SHOWN = ContextConfig(goal="shown")


def first_seen(page: str, goal: str = "") -> Observation:
    """Returns the observation of the first step of a session."""
    return Observation(page=page, history=(), persona="", goal=goal, step=0)


def scored_steps(
    store: SessionStore, split: AnySplit, *, context: ContextConfig | None = None, sessions: int | None = None
) -> Iterator[ScoredStep]:
    """The scored steps with what an agent sees there."""
    return steps_at(store, split, EvaluationConfig(split=split, sessions=sessions).keys(store), context)


def generate_replies(
    agent: Agent, steps: Iterable[ScoredStep], *, seed: int | None = 0, batch_size: int = 64
) -> Iterator[tuple[ScoredStep, str | NoReply]]:
    """Each step with the agent's reply, as it comes."""
    steps = list(steps)
    answering = adapt_agent(agent)
    batches = plan_batches(answering, [step.key for step in steps], batch_size)
    return ((step, answer.reply) for step, answer in generate(answering, steps, batches, seed=seed))
