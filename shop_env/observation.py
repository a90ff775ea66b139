"""A step of a session as an agent sees it: plain JSON values under five keys, limited by a ContextConfig.

Stands between the store and the agent: turns a Session and a step index into the Observation of that step (Shop-R1,
equation 1: pages c_1..t, actions and rationales 1..t-1). It never holds the logged action of the step itself.

Pages and rationales: Shop-R1, table 5 compares `whole_session` with `latest_step`.

Goal: hidden by default, because neither paper's logs have one. Where a log has one, it gives away most of the text that
is typed next (docs/demo_shop.md).

Persona: the shopper's, none, another user's, or a generic one (Customer-R1, sections 4.5 and 4.7). `shuffled` needs the
other users' personas, so code that observes sessions of a store calls `persona_texts` once and passes the result on.

Length: page_budget.py says what is dropped when the context is too long.
"""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypedDict

from replay_sessions.foundation.errors import BadConfig, check_choice
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Session, Step, written_action
from shop_env.marks import has_marks, mark_pages, remove_marks
from shop_env.page_budget import first_page_kept, shorten_page
from shop_env.replies import action_json

Scope = Literal["whole_session", "latest_step"]
PersonaArm = Literal["matched", "none", "shuffled", "generic"]
GoalArm = Literal["hidden", "shown"]

GENERIC_PERSONA = "A person who shops online now and then."


class ContextConfig(Config):
    """The part of a session that is shown.

    Attributes:
        scope: `whole_session` shows every page so far, `latest_step` only the current one; past actions and rationales
            are shown in both.
        marks: Whether pages mark what a browser shows of the session so far: links that were opened before, where the
            shopper clicked last, and places in lists of products (shop_env/marks.py).
        page_block: How many of the earliest pages are dropped at a time from a prompt that is too long for the model.
            With more, successive steps share a trunk more often but show fewer pages.
        rationales: Whether the history shows past rationales.
        goal: `hidden`, as in the papers, or `shown` if the log has one.
        persona: `matched` is the shopper's, `none` shows none, `shuffled` is another user's (shop_env.observation), and
            `generic` is one sentence that fits everybody.
        persona_seed: The seed that decides which other user's persona is shown with `shuffled`.
        budget: The largest number of characters of an observation's texts together, without the instructions and the
            chat template that a prompt adds; None means no limit. The earliest pages are dropped first, then the
            current page is shortened; actions and rationales stay (shop_env/page_budget.py).
    """

    scope: Scope = "whole_session"
    marks: bool = False
    page_block: int = 1
    rationales: bool = True
    goal: GoalArm = "hidden"
    persona: PersonaArm = "matched"
    persona_seed: int = 0
    budget: int | None = None

    def __post_init__(self) -> None:
        check_choice("context.scope", self.scope, Scope)
        check_choice("context.goal", self.goal, GoalArm)
        check_choice("context.persona", self.persona, PersonaArm)
        if self.page_block < 1:
            raise BadConfig(f"context.page_block is {self.page_block}; it must be at least 1.")
        if self.budget is not None and self.budget < 1:
            raise BadConfig(f"context.budget is {self.budget}; it must be at least 1, or None for no limit.")

    @property
    def grows_by_appending(self) -> bool:
        """True if each step's prompt begins with the complete prompt of the step before (for session trees)."""
        return self.scope == "whole_session" and self.budget is None


def drop_former_keys(record: bytes) -> bytes:
    """Removes from the JSON of a record the keys that configurations no longer have, where they had their defaults."""
    return re.sub(rb'"(?:pages":\s*"full"|metrics_(?:text|mean|invalid|mix)":\s*null),\s*', b"", record)


class _Users(Protocol):
    def session_ids(self) -> list[str]: ...
    def user_id(self, session_id: str) -> str: ...
    def session(self, session_id: str) -> Session: ...


def persona_texts(store: _Users, context: ContextConfig) -> Mapping[str, str] | None:
    """Returns the persona that `shuffled` shows for each user; None if the context shows another kind of persona."""
    if context.persona != "shuffled":
        return None
    first_sessions: dict[str, str] = {}
    for session_id in store.session_ids():
        first_sessions.setdefault(store.user_id(session_id), session_id)
    sessions = {user: store.session(session_id) for user, session_id in first_sessions.items()}
    return shuffle_personas(
        {user: session.persona.text for user, session in sessions.items() if session.persona}, context.persona_seed
    )


def shuffle_personas(personas: Mapping[str, str], seed: int) -> dict[str, str]:
    """Assigns each user the persona of another user.

    The text differs from the user's own, unless more than half of all users share one text.

    >>> shuffle_personas({"ada": "thrifty", "bob": "picky"}, seed=1)
    {'bob': 'thrifty', 'ada': 'picky'}
    """
    rng = random.Random(seed)
    by_text: dict[str, list[str]] = {}
    for user in sorted(personas):
        by_text.setdefault(personas[user], []).append(user)
    groups = list(by_text.values())
    rng.shuffle(groups)
    for group in groups:
        rng.shuffle(group)
    users = [user for group in groups for user in group]
    # Users with equal texts are adjacent, so rotating by the size of the largest group gives everyone another text.
    shift = max((len(group) for group in groups), default=0) % max(len(users), 1)
    return {user: personas[users[(index + shift) % len(users)]] for index, user in enumerate(users)}


def persona_of(session: Session, context: ContextConfig, foreign: Mapping[str, str] | None) -> str:
    """Returns the persona text that is shown with a session, "" for none."""
    if context.persona == "none" or session.persona is None:
        return ""
    if context.persona == "generic":
        return GENERIC_PERSONA
    if context.persona == "matched":
        return session.persona.text
    if foreign is None:
        raise BadConfig(
            "context.persona is 'shuffled', which needs the other users: pass personas=persona_texts(store, context)."
        )
    return foreign.get(session.user_id, "")  # "" if the user's first session has no persona


class PastStep(TypedDict):
    """A step already taken; `page` and `rationale` are "" if the context hides them or the log has none."""

    page: str
    rationale: str
    action: str  # the JSON text of the logged action, as in a reply


_copy = dict.copy
History = tuple[PastStep, ...]  # the steps already taken, oldest first


class Observation(TypedDict):
    """All that an agent sees before it replies; `step` counts from 0.

    An unknown or hidden persona or goal is "".
    """

    page: str
    history: History
    persona: str
    goal: str
    step: int


_DEFAULT_CONTEXT = ContextConfig()


class ObservedSession:
    """A session under a context: prepared once, then cheap to observe at any step.

    Args:
        personas: The result of `persona_texts` for the store; only the persona `shuffled` needs it.
    """

    def __init__(
        self,
        session: Session,
        context: ContextConfig,
        personas: Mapping[str, str] | None,
    ) -> None:
        pages = [step.page for step in session.steps]
        actions = [action_json(written_action(step.action)) for step in session.steps]
        if context.marks:
            pages = mark_pages(pages, actions)
        self._pages = [*pages, ""]
        self._past = [
            _past_step(step, page, action, context)
            for step, page, action in zip(session.steps, pages, actions, strict=True)
        ]
        self._persona = persona_of(session, context, personas)
        self._goal = (session.goal or "") if context.goal == "shown" else ""
        self._budget = context.budget
        self._seen: list[tuple[str, list[PastStep]] | None] = [None] * len(self._pages)

    def __len__(self) -> int:
        return len(self._past)

    def at(self, step_index: int) -> Observation:
        """Returns a new observation of a step, shared with no other; after the last step its page is ""."""
        page, past = self._seen[step_index] or self._see(step_index)
        return {
            "page": page,
            "history": tuple(map(_copy, past)),  # type: ignore[arg-type]
            "persona": self._persona,
            "goal": self._goal,
            "step": step_index,
        }

    def _see(self, step_index: int) -> tuple[str, list[PastStep]]:
        """Computes the page and the past steps within the budget, and keeps them for the next call."""
        page, past = self._pages[step_index], self._past[:step_index]
        if self._budget is not None:
            page, past = _fit(page, past, self._budget - len(self._persona) - len(self._goal))
        seen = self._seen[step_index] = page, past
        return seen


def _fit(page: str, past: Sequence[PastStep], budget: int) -> tuple[str, list[PastStep]]:
    """Returns the page, and the past steps with those of their pages, that take at most `budget` characters."""
    budget -= sum(len(step["rationale"]) + len(step["action"]) for step in past)
    page = shorten_page(page, max(0, budget), past[-1]["action"] if past else None)
    first = first_page_kept([len(step["page"]) for step in past], budget - len(page))
    return page, [{**step, "page": step["page"] if i >= first else ""} for i, step in enumerate(past)]


def observe(session: Session, step_index: int, context: ContextConfig = _DEFAULT_CONTEXT) -> Observation:
    """Returns the observation of one step; arguments as for ObservedSession."""
    return ObservedSession(session, context, None).at(step_index)


def adapt(observation: Observation, context: ContextConfig) -> Observation:
    """Returns the observation as a policy of a context was trained with, as far as it holds what that context shows.

    The persona, the goal, past rationales and past pages are left out if the context hides them; marks are added or
    removed; a budget is kept.
    """
    visible: Observation = {**observation}
    if context.persona == "none":
        visible["persona"] = ""
    if context.goal == "hidden":
        visible["goal"] = ""
    if not context.rationales:
        visible["history"] = tuple({**past, "rationale": ""} for past in visible["history"])
    if context.scope == "latest_step":  # before pages are marked, which none of these needs
        visible["history"] = tuple({**past, "page": ""} for past in visible["history"])
    history = visible["history"]
    pages = [*(past["page"] for past in history), visible["page"]]
    if context.marks != any(map(has_marks, pages)):
        actions = [past["action"] for past in history]
        *earlier, visible["page"] = mark_pages(pages, actions) if context.marks else map(remove_marks, pages)
        visible["history"] = tuple({**past, "page": page} for past, page in zip(history, earlier, strict=True))
    if context.budget is not None:
        budget = context.budget - len(visible["persona"]) - len(visible["goal"])
        visible["page"], past = _fit(visible["page"], visible["history"], budget)
        visible["history"] = tuple(past)
    return visible


def observe_session(
    session: Session, context: ContextConfig = _DEFAULT_CONTEXT, personas: Mapping[str, str] | None = None
) -> list[Observation]:
    """Returns the observations of all steps; arguments as for ObservedSession."""
    observed = ObservedSession(session, context, personas)
    return [observed.at(index) for index in range(len(observed))]


def _past_step(step: Step, page: str, action: str, context: ContextConfig) -> PastStep:
    return {
        "page": page if context.scope == "whole_session" else "",
        "rationale": (step.rationale or "") if context.rationales else "",
        "action": action,
    }
