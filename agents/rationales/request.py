"""The options of the command, the request for rationales, and the parsing of replies.

As in Shop-R1 (appendix B), one request covers a session, after a worked example. It has every page and action, so a
rationale may depend on later ones, and only the train split is written so. A request for one step has the page, the
earlier actions and the action alone (Customer-R1, section 4.1: the page and the action). No
request has the persona or the goal (Shop-R1, section 3: rationales are made "without leveraging any user profile
information"). The instructions are ours; those of the papers can be read from a file. This module does not need the
client of a server.
"""

import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple

from agents.prompting.options import ChatOptions
from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.schema import Session, written_action
from shop_env.evaluation.scored_steps import AnySplit
from shop_env.page_budget import shorten_page
from shop_env.prompts import Message
from shop_env.replies import Unreadable, action_json, object_inside

INSTRUCTIONS: dict[str, str] = tomllib.loads((files(__package__) / "prompts.toml").read_text(encoding="utf-8"))
Problem = Literal["refused", "malformed"]
_REFUSAL = re.compile(
    r"(i(['’]m| am) sorry, but|i can(not|['’]t) (assist|help with)|as an ai\b)",
    re.IGNORECASE,
)


class RationaleOptions(ChatOptions):
    """Writes the rationales that a store lacks.

    Attributes:
        store: `demo` or the path of a session store.
        out: The folder of the new version of the store.
        split: The split to write rationales for; other splits are copied unchanged. Splits other than train need
            `--by step`.
        overwrite: Replace the store at OUT.
        partial: Write the store even if some steps have no reply.
        by: `session` requests the rationales of a session together, as Shop-R1 does; `step` requests one at a time,
            without later steps, as Customer-R1 does.
        prompt: A text file (UTF-8) with instructions in place of the built-in ones.
        page_characters: The number of characters of each page, in a window around the action.
        schema: Guided decoding: force the JSON shape of the reply (response_format json_schema).
        seed: The seed of the model's sampling; greedy requests do not use it.
        dry_run: Print the number of requests, their tokens and what they would send, and send nothing.
    """

    store: str
    out: Path
    split: AnySplit = "train"
    overwrite: bool = False
    partial: bool = False
    by: Literal["session", "step"] = "session"
    prompt: Path | None = None
    page_characters: int = 10_000
    max_new_tokens: int = 4096
    schema: bool = False
    seed: int = 0
    dry_run: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, page_characters=self.page_characters)
        if self.split != "train" and self.by == "session":
            raise BadConfig(
                f"--split {self.split} with --by session: requests about whole sessions show later actions, and then "
                "prompts of validation and test tell them; add --by step"
            )


class NoRationale(NamedTuple):
    """A reply without a rationale."""

    problem: Problem
    text: str


def rationale_messages(session: Session, index: int | None, instructions: str, page_characters: int) -> list[Message]:
    """Builds the messages of a request about one step of a session, or about all of its steps if `index` is None."""
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
    """Parses the rationale in a reply, as one line; returns NoRationale if the reply has none.

    Args:
        key: The key of the rationale in the reply: in a reply about a session, the number of the action.

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
    if _REFUSAL.match((rationale or text).strip()):
        return NoRationale("refused", text)
    return rationale or NoRationale("malformed", text)
