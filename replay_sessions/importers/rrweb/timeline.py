"""What a recording tells of a shopper, in the order of time: what was done, which addresses came, pauses, remarks."""

from typing import Literal

import msgspec

from replay_sessions.importers.rrweb.acted_pages import ActedPage
from replay_sessions.importers.rrweb.page_helpers import PageToCome

__all__ = ["Act", "Address", "Left", "NotRead", "Pause", "Remark", "Timeline", "View"]


class View(msgspec.Struct, eq=False):
    """A page at one moment.

    Attributes:
        html: With a mark on what was acted on; "" once its page was asked for.
        outward: How many elements further out than the mark the click landed.
        page: The simplified page, once it was needed, or why there is none; a promise of it while others work on it.
    """

    html: str
    outward: int = 0
    page: ActedPage | str | PageToCome | None = None


class Act(msgspec.Struct, eq=False):
    """A click or a typed text.

    Attributes:
        view: The page; None once it is simplified, or promised, and stands in `page`.
        node_id, form_id: What was acted on, and the form that it belongs to.
        text: What was typed.
        is_masked: Whether the recorder hid what was typed or chosen.
        is_secret: Whether it was typed into a password field: it stays unknown.
        field_name: What the field is called in an address that its form is sent to.
        is_submit: Whether it presses a button that submits its form.
        submitted: Of typing: whether it was sent.
    """

    kind: Literal["click", "type_and_submit"]
    window: str
    number: int
    timestamp: float
    href: str
    view: View | None
    node_id: int
    page: ActedPage | str | PageToCome = ""
    form_id: int | None = None
    text: str = ""
    is_masked: bool = False
    is_secret: bool = False
    field_name: str = ""
    is_submit: bool = False
    submitted: bool = False
    rationale: str | None = None
    is_part: bool = False  # of the submission before it, so no action of its own
    buys: bool = False
    leaves: bool = False


class Left(msgspec.Struct, frozen=True):
    """Something that was done and is no action, and why, if that is to be listed."""

    what: str
    number: int
    reason: str = ""


class NotRead(msgspec.Struct, frozen=True):
    """Something in the recording that cannot be read."""

    number: int
    reason: str


class Address(msgspec.Struct, frozen=True):
    """A window shows another page."""

    window: str
    href: str
    before: str


class Pause(msgspec.Struct, frozen=True):
    """Nothing was done for long, or the recording ended; the page that the shopper had seen last, if it is known."""

    view: View
    number: int
    timestamp: float
    href: str
    is_end: bool


class Remark(msgspec.Struct, frozen=True):
    """What our own recorder notes beside rrweb's events; see `remarks`."""

    tag: str
    window: str
    fields: dict[str, str]


Timeline = list[Act | Left | NotRead | Address | Pause | Remark]
