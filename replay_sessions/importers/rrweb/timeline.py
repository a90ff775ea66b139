"""The entries of a recording's timeline: acts, addresses, pauses and remarks, in time order.

Remarks are custom events of our own recorder; other recorders also note addresses.

    rrweb.record.addCustomEvent("shop_r1.session", {session_id: "s17", user_id: "u4", goal: "a red kettle"})

| tag | payload |
|---|---|
| `shop_r1.session` | `session_id`, `user_id`, `goal`, each optional: pseudonyms; our collector alone writes it |
| `shop_r1.goal` | `text`: what the shopper is looking for |
| `shop_r1.persona` | `text`: who the shopper is |
| `shop_r1.rationale` | `text`: why the last action in this tab was done, in the shopper's words |
| `shop_r1.purchase` | the last click in this tab bought |
| `shop_r1.view` | this tab came into view: if the shopper leaves now, the terminate is on its page |
| `shop_r1.hidden` | `ids`: the elements that the browser does not render at the next press or key |
| `shop_r1.address`, PostHog's `$pageview` and `$url_changed` | `href`: the address changed without a new page |
"""

from typing import Literal

import msgspec

from replay_sessions.importers.rrweb.events import Unread
from replay_sessions.importers.rrweb.pages import ActedPage, View

SESSION = "shop_r1.session"
GOAL = "shop_r1.goal"
PERSONA = "shop_r1.persona"
RATIONALE = "shop_r1.rationale"
PURCHASE_TAG = "shop_r1.purchase"
VIEW_TAG = "shop_r1.view"
HIDDEN_TAG = "shop_r1.hidden"
ADDRESS_TAGS = frozenset({"shop_r1.address", "$pageview", "$url_changed"})
TAGS = ADDRESS_TAGS | {SESSION, GOAL, PERSONA, RATIONALE, PURCHASE_TAG, VIEW_TAG, HIDDEN_TAG}


class Act(msgspec.Struct, eq=False):
    """A click or a typed text.

    Attributes:
        page: The simplified page, or the reason why it is unknown.
        node_id: Id of the node that was acted on.
        form_id: Id of the form that the node belongs to.
        text: The typed text.
        is_masked: Whether the recorder masked the typed text or the choice.
        is_secret: Whether the text was typed into a password field, so that it stays unknown.
        field_name: Name of the field's parameter in the address that its form is sent to.
        is_submit: Whether the node is a button that submits its form.
        submitted: Whether a typed text was submitted.
    """

    kind: Literal["click", "type_and_submit"]
    window: str
    number: int
    timestamp: float
    href: str
    page: ActedPage | str
    node_id: int
    form_id: int | None = None
    text: str = ""
    is_masked: bool = False
    is_secret: bool = False
    field_name: str = ""
    is_submit: bool = False
    submitted: bool = False
    rationale: str | None = None
    is_part: bool = False  # part of the submission before it, so not a separate action
    buys: bool = False


class NoAction(msgspec.Struct, frozen=True):
    """Something that was done but is no action; `reason` says why, if it is to be listed."""

    name: str
    number: int
    reason: str = ""


class Address(msgspec.Struct, frozen=True):
    """A change of a window's address."""

    window: str
    href: str
    before: str


class Pause(msgspec.Struct, frozen=True):
    """A long time without acts, or the end of the recording, with the page that the shopper saw last, if known."""

    view: View
    number: int
    timestamp: float
    href: str
    is_end: bool


class Payload(msgspec.Struct, frozen=True):
    """The payload of a custom event about the session; see the module."""

    session_id: str | None = None
    user_id: str | None = None
    goal: str | None = None
    text: str | None = None
    href: str | None = None
    ids: frozenset[int] = frozenset()


class Remark(msgspec.Struct, frozen=True):
    """A note of our own recorder among rrweb's events; see the module."""

    tag: str
    window: str
    payload: Payload


Timeline = list[Act | NoAction | Unread | Address | Pause | Remark]
