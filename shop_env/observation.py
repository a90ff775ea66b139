"""A step of a session as an agent sees it: plain JSON values under five keys.

Stands between the store and the agent: a Session and a step index become the Observation of that step, as much of it
as the ContextConfig lets through (Shop-R1, equation 1: pages c_1..t, actions and rationales 1..t-1). The logged action
of the step itself is never part of it.
"""

from typing import TypedDict

from replay_sessions.schema import Session, Step, reply_action
from shop_env.context import ContextConfig
from shop_env.replies import action_json

__all__ = ["History", "Observation", "ObservedSession", "PastStep", "observe", "observe_session"]


class PastStep(TypedDict):
    """A step already taken. `page` and `rationale` are "" where the context left them out or the log has none."""

    page: str
    rationale: str
    action: str  # the JSON text of the logged action, as it stands in a reply


class History(tuple[PastStep, ...]):
    """The steps already taken, oldest first: a tuple that copies deeply in one go.

    Gymnasium's vector envs deep-copy every observation they return; on a plain tuple of dicts that takes longer than
    the step itself.
    """

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> "History":
        return History([past.copy() for past in self])


class Observation(TypedDict):
    """What an agent sees before it replies. `persona` and `goal` are "" where unknown; `step` counts from 0."""

    page: str
    history: History
    persona: str
    goal: str
    step: int


_DEFAULT_CONTEXT = ContextConfig()


class ObservedSession:
    """A session seen through a context, prepared once and then cheap to observe at any step."""

    def __init__(self, session: Session, context: ContextConfig = _DEFAULT_CONTEXT) -> None:
        self._pages = [step.page for step in session.steps]
        self._past = [_past_step(step, context) for step in session.steps]
        self._persona = session.persona.text if session.persona and context.persona == "matched" else ""
        self._goal = session.goal or ""

    def __len__(self) -> int:
        return len(self._pages)

    def at(self, step_index: int) -> Observation:
        """The observation of a step, nothing of it shared with another; behind the last step the page is ""."""
        return {
            "page": self._pages[step_index] if step_index < len(self._pages) else "",
            "history": History([past.copy() for past in self._past[:step_index]]),
            "persona": self._persona,
            "goal": self._goal,
            "step": step_index,
        }


def observe(session: Session, step_index: int, context: ContextConfig = _DEFAULT_CONTEXT) -> Observation:
    """The observation of one step."""
    return ObservedSession(session, context).at(step_index)


def observe_session(session: Session, context: ContextConfig = _DEFAULT_CONTEXT) -> list[Observation]:
    """The observations of all steps."""
    observed = ObservedSession(session, context)
    return [observed.at(index) for index in range(len(observed))]


def _past_step(step: Step, context: ContextConfig) -> PastStep:
    return {
        "page": step.page if context.scope == "whole_session" else "",
        "rationale": (step.rationale or "") if context.rationales else "",
        "action": action_json(reply_action(step.action)),
    }
