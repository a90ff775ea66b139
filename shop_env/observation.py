"""A step of a session as an agent sees it: plain JSON values under five keys.

Stands between the store and the agent: `observe` turns a Session and a step index into the Observation of that step,
as much of it as the ContextConfig lets through (Shop-R1, equation 1: pages c_1..t, actions and rationales 1..t-1).
The logged action of the step itself is never part of it.
"""

from typing import TypedDict

from replay_sessions.schema import Session, Step, reply_action
from shop_env.context import ContextConfig
from shop_env.replies import action_json

__all__ = ["Observation", "PastStep", "observe", "observe_session"]


class PastStep(TypedDict):
    """A step already taken. `page` and `rationale` are "" where the context left them out or the log has none."""

    page: str
    rationale: str
    action: str  # the JSON text of the logged action, as it stands in a reply


class Observation(TypedDict):
    """What an agent sees before it replies. `persona` and `goal` are "" where unknown; `step` counts from 0."""

    page: str
    history: tuple[PastStep, ...]
    persona: str
    goal: str
    step: int


_DEFAULT_CONTEXT = ContextConfig()


def observe(session: Session, step_index: int, context: ContextConfig = _DEFAULT_CONTEXT) -> Observation:
    """The observation of one step."""
    past = tuple(_past_step(step, context) for step in session.steps[:step_index])
    return _observation(session, step_index, past, context)


def observe_session(session: Session, context: ContextConfig = _DEFAULT_CONTEXT) -> list[Observation]:
    """The observations of all steps; equal to `observe` at each, but the past steps are built once and shared."""
    past = tuple(_past_step(step, context) for step in session.steps)
    return [_observation(session, index, past[:index], context) for index in range(len(session.steps))]


def _past_step(step: Step, context: ContextConfig) -> PastStep:
    return {
        "page": step.page if context.scope == "whole_session" else "",
        "rationale": (step.rationale or "") if context.rationales else "",
        "action": action_json(reply_action(step.action)),
    }


def _observation(session: Session, step_index: int, past: tuple[PastStep, ...], context: ContextConfig) -> Observation:
    persona = session.persona.text if session.persona and context.persona == "matched" else ""
    return {
        "page": session.steps[step_index].page,
        "history": past,
        "persona": persona,
        "goal": session.goal or "",
        "step": step_index,
    }
