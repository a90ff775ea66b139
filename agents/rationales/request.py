"""The options of the command, the request for rationales, and how they are parsed from the reply.

As in Shop-R1 (appendix B) a session is asked about at once, after a worked example: every page and every action, so a
rationale may know what came later. Step by step the model gets the page, the actions before, and the action there, and
nothing of what followed. It never gets the persona and the goal (Shop-R1, section 3: rationales are made "without
leveraging any user profile information"). The words are our own; the papers' can be used from a file. Nothing here
needs the client of a server.
"""

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple

from agents.prompting.options import ChatOptions
from replay_sessions.foundation.errors import check_at_least
from replay_sessions.schema import Session, written_action
from shop_env.evaluation.scored_steps import AnySplit
from shop_env.page_budget import shorten_page
from shop_env.prompts import Message
from shop_env.replies import Unreadable, action_json, object_inside

INSTRUCTIONS: dict[str, str] = tomllib.loads((files(__package__) / "prompts.toml").read_text(encoding="utf-8"))
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
        by: `session` asks about a session at once, as the papers do; `step` about one step at a time, which sees
            nothing of later ones.
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
    by: Literal["session", "step"] = "session"
    prompt: Path | None = None
    page_characters: int = 10_000
    max_new_tokens: int = 4096
    schema: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, page_characters=self.page_characters)


class NoRationale(NamedTuple):
    """A reply without a rationale."""

    problem: Problem
    text: str


def rationale_messages(session: Session, index: int | None, instructions: str, page_characters: int) -> list[Message]:
    """Builds the messages about one step of a session; index None: about all of them."""
    actions = [action_json(written_action(step.action)) for step in session.steps]
    pages = [
        shorten_page(step.page, page_characters, action) for step, action in zip(session.steps, actions, strict=True)
    ]
    if index is None:
        content = "\n\n".join(
            f"## Action {number}\n{page}\n{action}"
            for number, (page, action) in enumerate(zip(pages, actions, strict=True), start=1)
        )
    else:
        before = "\n".join(actions[:index]) or "(nothing)"
        content = f"## Before\n{before}\n\n## Page\n{pages[index]}\n\n## What the person did\n{actions[index]}"
    return [Message(role="system", content=instructions), Message(role="user", content=content)]


def parse_rationale(text: str, key: str = "rationale") -> str | NoRationale:
    """Parses the rationale in a reply, on one line, or says what the model did instead of giving one.

    Args:
        key: The number of the action, in a reply about a session.

    >>> parse_rationale('{"rationale": "I need a hat."}')
    'I need a hat.'
    >>> parse_rationale('{"1": "I need a hat.", "2": "That is one."}', "2")
    'That is one.'
    """
    try:
        value = object_inside(text)[0].get(key)
    except Unreadable:
        value = None
    rationale = " ".join(value.split()) if isinstance(value, str) else ""
    if (rationale or text).strip().lower().startswith(_REFUSALS):
        return NoRationale("refused", text)
    return rationale or NoRationale("malformed", text)
