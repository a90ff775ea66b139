"""An observation as chat messages: what every model in this project reads.

Stands between the observation and the model. The whole session is one conversation (Shop-R1, equation 1):

    system · page_1 · reply_1 · page_2 · reply_2 · … · page_t

so with the `whole_session` context the prompt of step t is a prefix of the prompt of step t+1; the session tree
(train.session_tree) rests on that. The system message holds what is constant over a session: the instructions, the
persona and the goal. The instructions of each style are in prompts.toml: those of the papers' appendices say in our own
words what the papers' do (tests/shop_env/test_instructions.py lists it, docs/paper_tables.md what differs).

A past reply shows its rationale. Where the context hides it, or the log has none, the key is left out: "" would be an
example to a model that is asked for a rationale.
"""

import tomllib
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypedDict

import msgspec

from replay_sessions.foundation.errors import BadConfig, check_choice
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Typing
from shop_env.observation import Observation
from shop_env.page_changes import PageForm, SessionPages
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
        style: Whose instructions: `shop_r1` and `customer_r1` those of the papers' appendices, `full` those of both;
            `compact` has none, for tiny models of random weights: the system message is only the persona and the goal,
            a line each.
        rationales: False asks for replies with an empty rationale (Customer-R1's prompt for actions alone).
        typing: The words for typing; None: those of the store's log.
        system_file: A text file (UTF-8) to use in place of the instructions.
    """

    style: Style = "full"
    rationales: bool = True
    typing: Typing | None = None
    system_file: str | None = None

    def __post_init__(self) -> None:
        check_choice("prompt.style", self.style, Style)
        if self.typing is not None:
            check_choice("prompt.typing", self.typing, Typing)


_DEFAULT_PROMPT = PromptConfig()


def prompt_of(store: object, config: PromptConfig) -> PromptConfig:
    """The config with the words for typing of a store's log."""
    typing = config.typing or getattr(store, "typing", None)
    return msgspec.structs.replace(config, typing=typing)


def render_prompt(
    observation: Observation, config: PromptConfig = _DEFAULT_PROMPT, pages: PageForm = "full"
) -> list[Message]:
    """The chat messages of an observation, ending with the current page; `pages` is the context's."""
    shown = SessionPages([*(past["page"] for past in observation["history"]), observation["page"]], pages)
    left_out = "" if config.style == "compact" else PAGE_LEFT_OUT
    messages: list[Message] = [{"role": "system", "content": _system_text(observation, config)}]
    for number, past in enumerate(observation["history"]):
        messages.append({"role": "user", "content": shown.text(number) or left_out})
        messages.append({"role": "assistant", "content": past_reply(past["rationale"], past["action"], config)})
    messages.append({"role": "user", "content": shown.text(len(observation["history"]))})
    return messages


def past_reply(rationale: str, action: str, config: PromptConfig) -> str:
    """A reply in the history; `action` is JSON text."""
    is_shown = bool(rationale) or not config.rationales
    return reply_json(rationale, action) if is_shown else f'{{"action": {action}}}'


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
    """The sections of a style that apply, with the persona in its place."""
    sections = STYLES[config.style]
    words = ("type_and_submit", "input") if config.typing == "both" else (config.typing or "type_and_submit",)
    typing = "\n".join(sections["typing"][word] for word in words)
    unused = ["typing", *(["action_alone"] if config.rationales else ["rationale", "reply"])]
    unused += [] if persona else ["persona"]
    texts = [text for name, text in sections.items() if name not in unused]
    return "\n\n".join(texts).replace("{typing}", typing).replace("{persona}", persona)


@lru_cache(maxsize=16)
def read_instructions(path: str, option: str = "prompt.system_file") -> str:
    """The text of the file that an option names."""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(
            f"{option} {path!r} cannot be read as UTF-8 text: {getattr(error, 'strerror', error)}"
        ) from error
