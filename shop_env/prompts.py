"""An observation as chat messages: what every model in this project reads.

Stands between the observation and the model. The whole session is one conversation (Shop-R1, equation 1):

    system · page_1 · reply_1 · page_2 · reply_2 · … · page_t

so with the `whole_session` context the prompt of step t is a prefix of the prompt of step t+1; the session tree
(train.session_tree) rests on that. The system message holds what is constant over a session: the instructions, in our
own words after the papers' appendices, the persona and the goal.
"""

from functools import lru_cache
from pathlib import Path
from typing import Literal, TypedDict

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Config
from shop_env.observation import Observation, PastStep
from shop_env.replies import reply_json

INSTRUCTIONS = """\
You are a person shopping online, not an assistant. Page by page you are shown what this person has in the browser, \
along with what the person has done so far and why. Say what the person does next, and why.

## Pages
Each page is simplified HTML: what the person can see, without scripts and styles. Whatever can be clicked or typed \
into carries a unique `name`, for example <button name="cart.checkout">. An action refers to an element by that name, \
copied exactly.

## Actions
- {"type": "click", "name": "<name of the element>"}
  Click on the element.
- {"type": "type_and_submit", "name": "<name of the input>", "text": "<what is typed>"}
  Type the text into the input and press enter.
- {"type": "terminate"}
  Close the window without buying: nothing here is worth going on for.

## Reply
Reply with one JSON object and nothing around it:
{"rationale": "<why>", "action": {"type": "<type>", ...}}
The rationale is one short sentence in the first person, the thought the person has at that moment."""

PERSONA_NOTE = """\
Who the person is. Let it decide between actions that the page makes equally likely; where it contradicts the page or \
the goal, those count."""

PAGE_LEFT_OUT = "(This page is no longer shown.)"


class Message(TypedDict):
    """One chat message; `role` is system, user or assistant."""

    role: str
    content: str


class PromptConfig(Config):
    """Options of the prompt.

    Attributes:
        style: `full` for language models; `compact` for tiny ones of random weights: the system message is only the
            persona and the goal, a line each.
        system_file: A text file (UTF-8) to use in place of the instructions, which `compact` has none of.
        persona_note: What to say before the persona; None: the style's own words, of which `compact` has none.
    """

    style: Literal["full", "compact"] = "full"
    system_file: str | None = None
    persona_note: str | None = None

    def __post_init__(self) -> None:
        if self.style not in ("full", "compact"):
            raise BadConfig(f"prompt.style is {self.style!r}; it must be 'full' or 'compact'.")


_DEFAULT_PROMPT = PromptConfig()


def render_prompt(observation: Observation, config: PromptConfig = _DEFAULT_PROMPT) -> list[Message]:
    """The chat messages of an observation, ending with the current page."""
    messages: list[Message] = [{"role": "system", "content": _system_text(observation, config)}]
    for past in observation["history"]:
        messages.append({"role": "user", "content": _past_page(past, config)})
        messages.append({"role": "assistant", "content": reply_json(past["rationale"], past["action"])})
    messages.append({"role": "user", "content": observation["page"]})
    return messages


def _past_page(past: PastStep, config: PromptConfig) -> str:
    return past["page"] or ("" if config.style == "compact" else PAGE_LEFT_OUT)


def _system_text(observation: Observation, config: PromptConfig) -> str:
    persona, goal = observation["persona"], observation["goal"]
    instructions, note = config.system_file and read_instructions(config.system_file), config.persona_note
    if config.style == "compact":
        return "\n".join(part for part in (instructions, note if persona else "", persona, goal) if part)
    parts = [INSTRUCTIONS if instructions is None else instructions]
    if persona:
        parts.append(f"## Persona\n{PERSONA_NOTE if note is None else note}\n\n{persona}")
    if goal:
        parts.append(f"## Goal\n{goal}")
    return "\n\n".join(parts)


@lru_cache(maxsize=16)
def read_instructions(path: str, option: str = "prompt.system_file") -> str:
    """The text of the file that an option names."""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(
            f"{option} {path!r} cannot be read as UTF-8 text: {getattr(error, 'strerror', error)}"
        ) from error
