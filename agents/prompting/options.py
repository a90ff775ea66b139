"""The options of the agent `prompting`, as ?key=value of its spec.

    prompting?base_url=http://localhost:8000/v1&model=Qwen/Qwen2.5-3B-Instruct&temperature=0.6

`deciding_options` returns the options that decide a reply, with a digest of the file of instructions; they identify a
row of the leaderboard. If other options change (concurrency, time limits, retries, limit on tokens), replies stay
valid.
"""

import hashlib
import os
import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from replay_sessions.foundation.command_line import JSON_OBJECT
from replay_sessions.foundation.config_errors import convert_fields
from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Typing
from shop_env.prompts import PromptConfig, Style, read_instructions

SystemRole = Literal["system", "first_user"]
_NOT_DECIDING = {"key_env", "concurrency", "timeout_s", "max_retries", "token_limit"}


class ChatOptions(Config):
    """The model to use, and how to call it.

    Attributes:
        base_url: The address of the server's API, such as http://localhost:8000/v1.
        model: The name of the model on the server.
        key_env: The environment variable that holds the key, if the server requires one.
        temperature: The sampling temperature; 0 is greedy, and with any other value each request has its own seed.
        max_new_tokens: The maximum number of tokens of a reply, thinking included.
        extra: Further fields of each request, which override the agent's, such as {"top_p": 0.9}; null leaves a field
            out.
        concurrency: The number of requests at the same time.
        timeout_s: The time limit of one try, in seconds.
        max_retries: The maximum number of retries of a request if the server is away, busy or faulty.
        token_limit: The number of tokens, read and written in this run, after which nothing more is sent; None means no
            limit.
    """

    base_url: str
    model: str
    key_env: str = "OPENAI_API_KEY"
    temperature: float = 0.0
    max_new_tokens: int = 512
    extra: Annotated[dict[str, Any], JSON_OBJECT] = {}
    concurrency: int = 16
    timeout_s: float = 120.0
    max_retries: int = 5
    token_limit: int | None = None

    def __post_init__(self) -> None:
        url = urlsplit(self.base_url)
        if url.scheme not in ("http", "https") or not url.hostname or url.username or url.query:
            raise BadConfig(  # without the address: it may hold a key
                "base_url must be the address of a server's API, such as http://localhost:8000/v1, without a name, "
                "password or ?query: a key comes from the environment variable that key_env names"
            )
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", self.key_env):
            raise BadConfig("key_env must be the name of an environment variable, such as OPENAI_API_KEY, and no key")
        check_at_least(0, temperature=self.temperature, max_retries=self.max_retries, token_limit=self.token_limit)
        check_at_least(1, max_new_tokens=self.max_new_tokens, concurrency=self.concurrency, timeout_s=self.timeout_s)

    @property
    def key(self) -> str:
        """The key in the environment, never part of a record; without one a word, which the client needs."""
        return os.environ.get(self.key_env, "").strip() or "no-key"

    def request_fields(self, seed: int | None) -> dict[str, Any]:
        """Returns the fields of a request, except its messages and format."""
        usual = {"temperature": self.temperature, "max_tokens": self.max_new_tokens}
        fields = {**usual, "seed": seed if self.temperature > 0 else None, **self.extra}
        return {name: value for name, value in fields.items() if value is not None}


class PromptingOptions(ChatOptions):
    """The options of the agent `prompting`.

    Attributes:
        schema: Guided decoding: force a reply to have the JSON shape of replies (response_format json_schema).
        shots: The number of sessions of the train split that are examples.
        shot_seed: The seed that draws the examples.
        shot_page_characters: The number of characters of each example's page, in a window around its action.
        style: The style of the instructions (shop_env.prompts.PromptConfig).
        typing: The words for typing in the instructions; None means those of the store's log.
        scrolls: Whether the instructions name the action `scroll`; None means whether the store's log has it.
        system_file: A text file (UTF-8) in place of the instructions.
        system_role: The message with the instructions: `system`, or `first_user` for models whose chat template refuses
            a system message, such as Gemma 2; they then stand at the head of the first page.
    """

    schema: bool = False
    shots: int = 0
    shot_seed: int = 0
    shot_page_characters: int = 1500
    style: Style = "full"
    typing: Typing | None = None
    scrolls: bool | None = None
    system_file: str | None = None
    system_role: SystemRole = "system"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(0, shots=self.shots)
        check_at_least(1, shot_page_characters=self.shot_page_characters)

    @property
    def prompt(self) -> PromptConfig:
        """The format of the prompt."""
        return PromptConfig(style=self.style, typing=self.typing, scrolls=self.scrolls, system_file=self.system_file)


def parse_options(arguments: dict[str, Any]) -> PromptingOptions:
    """Builds the options from the arguments of a spec.

    Raises:
        BadConfig: A key is missing or unknown, or a value is invalid.
    """
    if missing := [name for name in ("base_url", "model") if name not in arguments]:
        raise BadConfig(
            f"agent 'prompting' needs {' and '.join(missing)}: prompting?base_url=http://localhost:8000/v1&model=NAME"
        )
    model = str(arguments["model"])  # `model=404` is a number otherwise
    return convert_fields({**arguments, "model": model}, PromptingOptions, "agent 'prompting'")


def deciding_options(options: PromptingOptions) -> dict[str, Any]:
    """Returns the options that decide a reply, as JSON values, with a digest of the instructions in a file."""
    fields = {name: value for name, value in msgspec.to_builtins(options).items() if name not in _NOT_DECIDING}
    if options.system_file:
        instructions = read_instructions(options.system_file, "system_file")
        fields["system_file"] = hashlib.blake2b(instructions.encode(), digest_size=16).hexdigest()
    return fields
