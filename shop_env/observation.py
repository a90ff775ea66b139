"""A step of a session as an agent sees it: plain JSON values under five keys.

Stands between the store and the agent: a Session and a step index become the Observation of that step, as much of it
as the ContextConfig lets through (Shop-R1, equation 1: pages c_1..t, actions and rationales 1..t-1). The logged action
of the step itself is never part of it.
"""

from collections.abc import Mapping
from typing import TypedDict

from replay_sessions.schema import Session, Step, reply_action
from shop_env.context import ContextConfig, find_counter, first_page_kept, persona_of, shorten_page
from shop_env.replies import action_json


class PastStep(TypedDict):
    """A step already taken. `page` and `rationale` are "" where the context left them out or the log has none."""

    page: str
    rationale: str
    action: str  # the JSON text of the logged action, as it stands in a reply


_copy = dict.copy
History = tuple[PastStep, ...]  # the steps already taken, oldest first


class Observation(TypedDict):
    """What an agent sees before it replies. `persona` and `goal` are "" where unknown; `step` counts from 0."""

    page: str
    history: History
    persona: str
    goal: str
    step: int


_DEFAULT_CONTEXT = ContextConfig()


class ObservedSession:
    """A session seen through a context, prepared once and then cheap to observe at any step.

    Args:
        personas: What `shop_env.context.persona_texts` says of the store; only the persona arm `shuffled` needs it.
    """

    def __init__(
        self,
        session: Session,
        context: ContextConfig = _DEFAULT_CONTEXT,
        personas: Mapping[str, str] | None = None,
    ) -> None:
        self._pages = [*(step.page for step in session.steps), ""]
        self._past = [_past_step(step, context) for step in session.steps]
        self._persona = persona_of(session, context, personas)
        self._goal = session.goal or ""
        self._budget = context.budget
        self._count = find_counter(context.counter)
        self._seen: list[tuple[str, list[PastStep]] | None] = [None] * len(self._pages)

    def __len__(self) -> int:
        return len(self._past)

    def at(self, step_index: int) -> Observation:
        """The observation of a step, nothing of it shared with another; behind the last step the page is ""."""
        page, past = self._seen[step_index] or self._see(step_index)
        return {
            "page": page,
            "history": tuple(map(_copy, past)),  # type: ignore[arg-type]
            "persona": self._persona,
            "goal": self._goal,
            "step": step_index,
        }

    def _see(self, step_index: int) -> tuple[str, list[PastStep]]:
        """The page and the past of a step, within the budget; worked out once."""
        page, past = self._pages[step_index], self._past[:step_index]
        if self._budget is not None:
            page, past = self._fit(page, past, self._budget)
        seen = self._seen[step_index] = page, past
        return seen

    def _fit(self, page: str, past: list[PastStep], budget: int) -> tuple[str, list[PastStep]]:
        count = self._count
        fixed = count(self._persona) + count(self._goal)
        fixed += sum(count(step["rationale"]) + count(step["action"]) for step in past)
        last_action = past[-1]["action"] if past else None
        page = shorten_page(page, max(0, budget - fixed), count, last_action)
        counts = [count(step["page"]) for step in past]
        first = first_page_kept(counts, budget - fixed - count(page))
        return page, [{**step, "page": step["page"] if i >= first else ""} for i, step in enumerate(past)]


def observe(
    session: Session,
    step_index: int,
    context: ContextConfig = _DEFAULT_CONTEXT,
    personas: Mapping[str, str] | None = None,
) -> Observation:
    """The observation of one step."""
    return ObservedSession(session, context, personas).at(step_index)


def observe_session(
    session: Session, context: ContextConfig = _DEFAULT_CONTEXT, personas: Mapping[str, str] | None = None
) -> list[Observation]:
    """The observations of all steps."""
    observed = ObservedSession(session, context, personas)
    return [observed.at(index) for index in range(len(observed))]


def _past_step(step: Step, context: ContextConfig) -> PastStep:
    return {
        "page": step.page if context.scope == "whole_session" else "",
        "rationale": (step.rationale or "") if context.rationales else "",
        "action": action_json(reply_action(step.action)),
    }
