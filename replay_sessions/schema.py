"""The records that all packages use: Action, Step, Session, Persona.

A session is one shopper's visit: pages and the action taken on each (Shop-R1, section 3). Records are frozen. Unknown
fields are errors, so a misspelt key is reported when it is read. Actions have the papers' JSON form (Shop-R1,
appendix A):

    {"type": "click", "name": "nav_bar.cart"}
    {"type": "type_and_submit", "name": "search_input", "text": "red kettle"}
    {"type": "terminate"}

A typed text that is not known to be submitted has the type `input`, as in OPeRA and Customer-R1. Stores of logs with
scrolls (OPeRA's full version) have a fourth action, {"type": "scroll"}; in all others it is unknown.
"""

from collections.abc import Mapping
from html import escape
from typing import Literal, assert_never, get_args

import msgspec

SCHEMA_VERSION = 1

Split = Literal["train", "validation", "test"]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A record of the store, which is frozen and rejects unknown fields."""


class Click(Record, frozen=True, kw_only=True, tag_field="type", tag="click"):
    """A click on the element called `name`. `click_type` is the log's subtype (OPeRA), which is not predicted."""

    name: str
    click_type: str | None = None


class TypeAndSubmit(Record, frozen=True, kw_only=True, tag_field="type", tag="type_and_submit"):
    """A text typed into the input called `name`. `submitted` is False if the log only shows that it was typed."""

    name: str
    text: str
    submitted: bool = True


class Terminate(Record, frozen=True, kw_only=True, tag_field="type", tag="terminate"):
    """The shopper's decision to close the window without buying."""


class Scroll(Record, frozen=True, kw_only=True, tag_field="type", tag="scroll"):
    """Scrolling of the page. How far is not predicted, and consecutive scrolls are one action (`Step.merged`)."""


Action = Click | TypeAndSubmit | Terminate | Scroll
ActionType = Literal["click", "type_and_submit", "terminate", "scroll"]
ACTION_CLASSES: dict[ActionType, type[Action]] = {kind.__struct_config__.tag: kind for kind in get_args(Action)}
ACTION_TYPES = tuple(ACTION_CLASSES)
INPUT = "input"  # the type of typed texts that are not known to be submitted, in OPeRA and Customer-R1
Typing = Literal["type_and_submit", "input", "both"]  # the types that the typed texts of a log need


def action_type(action: Action) -> ActionType:
    """Returns the type of an action as it is written in JSON.

    >>> action_type(Terminate())
    'terminate'
    """
    tag: ActionType = action.__struct_config__.tag  # type: ignore[assignment]
    return tag


def reply_action(action: Action) -> dict[str, str]:
    """Returns the type and the predicted fields of an action, by which actions are compared.

    >>> reply_action(Click(name="nav_bar.cart", click_type="nav_bar"))
    {'type': 'click', 'name': 'nav_bar.cart'}
    """
    match action:
        case Click(name=name):
            return {"type": "click", "name": name}
        case TypeAndSubmit(name=name, text=text):
            return {"type": "type_and_submit", "name": name, "text": text}
        case Terminate():
            return {"type": "terminate"}
        case Scroll():
            return {"type": "scroll"}
        case _:
            assert_never(action)


def written_action(action: Action) -> dict[str, str]:
    """Returns the JSON object that a perfect reply carries under `action`.

    >>> written_action(TypeAndSubmit(name="search", text="kettle", submitted=False))
    {'type': 'input', 'name': 'search', 'text': 'kettle'}
    """
    return reply_action(action) | ({} if getattr(action, "submitted", True) else {"type": INPUT})


def read_action(written: Mapping[str, str]) -> Action:
    """Returns the action that `written_action` wrote as JSON.

    >>> read_action({"type": "input", "name": "search", "text": "kettle"})
    TypeAndSubmit(name='search', text='kettle', submitted=False)
    """
    as_input = {"type": "type_and_submit", "submitted": False} if written["type"] == INPUT else {}
    action: Action = msgspec.convert({**written, **as_input}, Action)
    return action


def describe_action(action: Action) -> str:
    """Describes an action in a few words for people.

    >>> describe_action(TypeAndSubmit(name="search_input", text="red kettle"))
    "type 'red kettle' into search_input"
    """
    match action:
        case Click(name=name, click_type=click_type):
            return f"click {name}" + (" (purchase)" if click_type == "purchase" else "")
        case TypeAndSubmit(name=name, text=text, submitted=submitted):
            return f"type {text!r} into {name}" + ("" if submitted else " (not known to be submitted)")
        case Terminate():
            return "terminate"
        case Scroll():
            return "scroll"
        case _:
            assert_never(action)


class Step(Record, frozen=True, kw_only=True):
    """A page as simplified HTML, and the action that the shopper took on it.

    Attributes:
        rationale: The reason for the action, in the shopper's first person; None if the log has none.
        rationale_source: What wrote the rationale, such as the name of a model (agents/rationales). If None, the
            shopper wrote it.
        gap: Number of events that are missing directly before this step: events that were left out because they are
            no action of this schema (or, in raw logs, were not found on their page), and holes in the log's own step
            numbers, if it has any.
        merged: Number of further logged events that this action stands for: the scrolls that directly follow a scroll.
        is_inferred: Whether the log lacks the action, so that it is inferred from the pages before and after it.
    """

    page: str
    action: Action
    rationale: str | None = None
    rationale_source: str | None = None
    url: str | None = None
    timestamp: str | None = None
    gap: int = 0
    merged: int = 0
    is_inferred: bool = False

    def __repr__(self) -> str:
        return f"Step({describe_action(self.action)}, page of {len(self.page):,} characters)"

    def _repr_html_(self) -> str:
        """Returns the action and the page, with the acted-on element marked, as HTML for notebooks."""
        from replay_sessions.simplify.page_view import page_frame  # noqa: PLC0415 - loads the page engine

        why = f" <i>{escape(self.rationale)}</i>" if self.rationale else ""
        frame = page_frame(self.page, marks={getattr(self.action, "name", ""): "logged"})
        return f"<p><b>{escape(describe_action(self.action))}</b>{why}</p>{frame}"


class Persona(Record, frozen=True, kw_only=True):
    """A description of the shopper.

    Attributes:
        text: The description that a model reads.
        traits: Values by the name of the trait; reports group shoppers by them.
    """

    text: str
    traits: dict[str, str] = {}


class Session(Record, frozen=True, kw_only=True):
    """One shopper's visit.

    Attributes:
        other_ids: Further ids that the log has for the user, such as the browser's of a customer.
        goal: What the shopper wants to do, if the log has it.
        source: Name of the importer or generator that wrote the session.
        official_split: The split that the publisher of the data put the session in, if any.
    """

    session_id: str
    user_id: str
    steps: tuple[Step, ...]
    source: str
    other_ids: tuple[str, ...] = ()
    persona: Persona | None = None
    goal: str | None = None
    official_split: Split | None = None

    def __post_init__(self) -> None:
        if not self.session_id or not self.user_id:
            raise ValueError("a session needs a non-empty session_id and user_id")
        if not self.steps:
            raise ValueError(f"session {self.session_id!r} has no steps")

    @property
    def user_ids(self) -> tuple[str, ...]:
        """All ids of the user."""
        return self.user_id, *self.other_ids

    @property
    def page_characters(self) -> int:
        """Number of characters of all pages."""
        return sum(len(step.page) for step in self.steps)

    @property
    def rationale_sources(self) -> frozenset[str]:
        """Names of what wrote rationales of the session, other than the shopper."""
        return frozenset(step.rationale_source for step in self.steps if step.rationale_source)

    def __repr__(self) -> str:
        goal = f", goal {self.goal!r}" if self.goal else ""
        return f"Session({self.session_id!r}, user {self.user_id!r}{goal}, {len(self.steps)} steps)"

    def _repr_html_(self) -> str:
        """Returns the shopper, the goal and the steps, each of which can be unfolded, as HTML for notebooks."""
        persona = self.persona.text if self.persona else None
        who = " · ".join(filter(None, (self.session_id, self.goal, persona)))
        steps = (
            f"<details><summary>{number}. {escape(repr(step))}</summary>{step._repr_html_()}</details>"
            for number, step in enumerate(self.steps)
        )
        return f"<p>{escape(who)}</p>{''.join(steps)}"
