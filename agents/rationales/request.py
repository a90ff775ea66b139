"""The options of the command, the request for one step's rationale, and how that is parsed from the reply.

The model gets the page, the actions before, and the action there: never a later page or action, nor the persona and the
goal (Shop-R1, section 3: rationales are made "without leveraging any user profile information"). The instructions are
our own; the papers' can be used from a file. Nothing here needs the client of a server.
"""

from pathlib import Path
from typing import Literal, NamedTuple

from agents.prompting.options import ChatOptions
from replay_sessions.foundation.errors import check_at_least
from replay_sessions.schema import Session, written_action
from shop_env.evaluation.scored_steps import AnySplit
from shop_env.page_budget import shorten_page
from shop_env.prompts import Message
from shop_env.replies import Unreadable, action_json, object_inside

INSTRUCTIONS = """\
A person is shopping online. You are shown a page as simplified HTML, in which whatever can be clicked or typed into \
carries a `name`, what the person did before, and what the person then did on this page:

- click: the person clicked the element of that name.
- type_and_submit: the person typed the text into the input of that name and pressed enter.
- terminate: the person closed the window without buying, for nothing there was worth going on for.

Say why, as the person would have thought it at that moment, just before doing it: one short sentence in the first \
person, about the products and the wish behind the act. Do not mention names of elements, HTML or that you are shown \
anything, and do not tell what the page does not show.

Reply with one JSON object and nothing around it: {"rationale": "<the sentence>"}"""

Problem = Literal["refused", "malformed"]
_REFUSALS = (
    "i'm sorry, but",
    "i am sorry, but",
    "i cannot assist",
    "i can't assist",
    "i cannot help with",
    "i can't help with",
    "as an ai",
)


class RationaleOptions(ChatOptions):
    """Writes the rationales that a store lacks.

    Attributes:
        store: `demo` or the path of a session store.
        out: The folder of the new version.
        split: The split whose rationales are written; the others are copied as they are.
        overwrite: Replace the store at OUT.
        partial: Write the store also where steps have no reply.
        prompt: A text file (UTF-8) with instructions in place of the built-in ones.
        page_characters: The length of the window of a page around the action.
        schema: Guided decoding (response_format json_schema).
        seed: Seeds the model's draws; greedy requests draw nothing.
    """

    store: str
    out: Path
    split: AnySplit = "all"
    overwrite: bool = False
    partial: bool = False
    prompt: Path | None = None
    page_characters: int = 30_000
    schema: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, page_characters=self.page_characters)


class NoRationale(NamedTuple):
    """A reply without a rationale."""

    problem: Problem
    text: str


def rationale_messages(session: Session, index: int, instructions: str, page_characters: int) -> list[Message]:
    """Builds the messages about one step of a session."""
    actions = [action_json(written_action(step.action)) for step in session.steps[: index + 1]]
    page = shorten_page(session.steps[index].page, page_characters, actions[-1])
    before = "\n".join(actions[:-1]) or "(nothing)"
    content = f"## Before\n{before}\n\n## Page\n{page}\n\n## What the person did\n{actions[-1]}"
    return [Message(role="system", content=instructions), Message(role="user", content=content)]


def parse_rationale(text: str) -> str | NoRationale:
    """Parses the rationale in a reply, on one line, or says what the model did instead of giving one.

    >>> parse_rationale('{"rationale": "I need a hat."}')
    'I need a hat.'
    """
    try:
        value = object_inside(text)[0].get("rationale")
    except Unreadable:
        value = None
    rationale = " ".join(value.split()) if isinstance(value, str) else ""
    if (rationale or text).strip().lower().startswith(_REFUSALS):
        return NoRationale("refused", text)
    return rationale or NoRationale("malformed", text)
