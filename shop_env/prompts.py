"""Renders an observation as chat messages, the input of every language model in this project.

A session is one conversation (Shop-R1, equation 1):

    system · page_1 · reply_1 · page_2 · reply_2 · … · page_t

So with the `whole_session` context the prompt of step t is a prefix of the prompt of step t+1; the session tree
(train.session_tree) relies on that. The system message holds the constants of a session: the instructions, the persona
and the goal. The instructions of each style are in prompts.toml. Those of the papers' styles paraphrase the papers'
appendices (tests/shop_env/test_instructions.py lists the contents, docs/paper_tables.md the differences).

Each past step is a complete reply. If the context hides its rationale or the log has none, the rationale restates the
action ("I click cart."), because models imitate the replies in their prompt, an empty rationale or a missing key too.
"""

import json
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypedDict

import msgspec

from replay_sessions.foundation.errors import BadConfig, check_choice
from replay_sessions.foundation.records import Config
from replay_sessions.schema import INPUT, Typing, describe_action, read_action
from shop_env.observation import Observation
from shop_env.replies import reply_json

STYLES: dict[str, dict[str, Any]] = tomllib.loads((files(__package__) / "prompts.toml").read_text(encoding="utf-8"))
PAGE_LEFT_OUT = "(This page is no longer shown.)"

Style = Literal["full", "shop_r1", "customer_r1", "compact"]


class Message(TypedDict):
    """One chat message; `role` is system, user or assistant."""

    role: str
    content: str


class PromptConfig(Config):
    """Options of the prompt.

    Attributes:
        style: The instructions: `shop_r1` and `customer_r1` have those of the papers' appendices, `full` has both;
            `compact` has none, for tiny models trained from scratch: the system message is only the persona and the
            goal, a line each.
        rationales: If False, the instructions ask for an empty rationale (Customer-R1's prompt for actions alone).
        typing: The action type for typing in the instructions; None means the type in the store's log.
        scrolls: Whether the instructions name the action type `scroll`; None means whether the store's log has it.
        system_file: A text file (UTF-8) that replaces the instructions.
    """

    style: Style = "full"
    rationales: bool = True
    typing: Typing | None = None
    scrolls: bool | None = None
    system_file: str | None = None

    def __post_init__(self) -> None:
        check_choice("prompt.style", self.style, Style)
        if self.typing is not None:
            check_choice("prompt.typing", self.typing, Typing)


_DEFAULT_PROMPT = PromptConfig()


def prompt_of(store: object, config: PromptConfig) -> PromptConfig:
    """Returns the config with the action types of the store's log for typing and scrolling, unless it sets them."""
    typing = config.typing or getattr(store, "typing", None)
    scrolls = getattr(store, "scrolls", None) if config.scrolls is None else config.scrolls
    return msgspec.structs.replace(config, typing=typing, scrolls=scrolls)


def render_prompt(observation: Observation, config: PromptConfig = _DEFAULT_PROMPT) -> list[Message]:
    """Renders an observation as chat messages, the current page last."""
    left_out = "" if config.style == "compact" else PAGE_LEFT_OUT
    messages: list[Message] = [{"role": "system", "content": _system_text(observation, config)}]
    for past in observation["history"]:
        messages.append({"role": "user", "content": past["page"] or left_out})
        messages.append({"role": "assistant", "content": past_reply(past["rationale"], past["action"], config)})
    messages.append({"role": "user", "content": observation["page"]})
    return messages


def merge_system(messages: Sequence[Message]) -> list[Message]:
    """Returns the messages with the system's text at the head of the first user message, for models that refuse it.

    >>> merge_system([{"role": "system", "content": "Predict."}, {"role": "user", "content": "<html>"}])
    [{'role': 'user', 'content': 'Predict.\\n\\n<html>'}]
    """
    system, first, *others = messages
    head = system["content"] and f"{system['content']}\n\n"
    return [{"role": "user", "content": head + first["content"]}, *others]


def past_reply(rationale: str, action: str, config: PromptConfig) -> str:
    """Formats a reply of the history.

    Args:
        rationale: The rationale, "" if it is hidden or unknown.
        action: The action as JSON text.
        config: The options of the prompt.
    """
    return reply_json(rationale or (_restate(action) if config.rationales else ""), action)


def _restate(action: str) -> str:
    """Returns a sentence that states an action and no reason.

    >>> _restate('{"type": "input", "name": "search", "text": "kettle"}')
    "I type 'kettle' into search."
    """
    fields = json.loads(action)
    as_submitted = {"type": "type_and_submit"} if fields["type"] == INPUT else {}
    return f"I {describe_action(read_action({**fields, **as_submitted}))}."


def _system_text(observation: Observation, config: PromptConfig) -> str:
    persona, goal = observation["persona"], observation["goal"]
    instructions = config.system_file and read_instructions(config.system_file)
    if config.style == "compact":
        return "\n".join(part for part in (instructions, persona, goal) if part)
    if instructions is None:
        parts = [_instructions(config, persona)]
    else:
        parts = [instructions, *([f"## Persona\n{persona}"] if persona else [])]
    return "\n\n".join([*parts, *([f"## Goal\n{goal}"] if goal else [])])


@lru_cache(maxsize=1024)
def _instructions(config: PromptConfig, persona: str) -> str:
    """Joins the sections of a style that apply, and fills in the persona."""
    sections = STYLES[config.style]
    words = ("type_and_submit", "input") if config.typing == "both" else (config.typing or "type_and_submit",)
    typing = "\n".join(sections["typing"][word] for word in words)
    scroll = sections["scroll"] if config.scrolls else ""
    unused = ["typing", "scroll", *(["action_alone"] if config.rationales else ["rationale", "reply"])]
    unused += [] if persona else ["persona"]
    texts = [text for name, text in sections.items() if name not in unused]
    return "\n\n".join(texts).replace("{typing}", typing).replace("{scroll}", scroll).replace("{persona}", persona)


@lru_cache(maxsize=16)
def read_instructions(path: str, option: str = "prompt.system_file") -> str:
    """Reads the text file at `path`; the error message names `option`."""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(
            f"{option} {path!r} cannot be read as UTF-8 text: {getattr(error, 'strerror', error)}"
        ) from error
