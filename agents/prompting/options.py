"""The options of the agent `prompting`, as ?key=value of its spec.

    prompting?base_url=http://localhost:8000/v1&model=Qwen/Qwen2.5-3B-Instruct&temperature=0.6

`deciding_options` are those that decide a reply, with the content of the file of instructions: they identify a row of
the leaderboard. All else (concurrency, time limits, retries, limit on tokens) may change, and replies stay valid.
"""

import hashlib
import os
import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
import tyro

from replay_sessions.foundation.config_errors import convert_fields
from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Typing
from shop_env.prompts import PromptConfig, Style, read_instructions

History = Literal["as_trained", "whole_replies", "described"]
_NOT_DECIDING = {"key_env", "concurrency", "timeout_s", "max_retries", "token_limit"}


JSON_OBJECT = tyro.constructors.PrimitiveConstructorSpec(
    nargs=1,
    metavar="JSON",
    instance_from_str=lambda words: msgspec.json.decode(words[0], type=dict[str, Any]),
    is_instance=lambda value: isinstance(value, dict),
    str_from_instance=lambda value: [msgspec.json.encode(value).decode()],
)


class ChatOptions(Config):
    """The model to use, and how to call it.

    Attributes:
        base_url: The address of the server's API, such as http://localhost:8000/v1.
        model: Its name on the server.
        key_env: The environment variable that holds the key; none is needed where the server asks for none.
        temperature: 0 is greedy; with any other value each request has a seed of its own.
        max_new_tokens: The most that a reply may have; thinking counts.
        extra: Further fields of each request, over the agent's own, such as {"top_p": 0.9}; null leaves a field out.
        concurrency: Requests at once.
        timeout_s: The longest that one try may take.
        max_retries: The most further tries of a request where the server is away, busy or faulty.
        token_limit: After so many tokens, read and written in this run, nothing more is sent; None: no limit.
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
    def key(self) -> str | None:
        """The key in the environment, if there is one; never part of a record."""
        return os.environ.get(self.key_env, "").strip() or None

    def request_fields(self, seed: int | None) -> dict[str, Any]:
        """Returns the fields of a request, except its messages and format."""
        usual = {"temperature": self.temperature, "max_tokens": self.max_new_tokens}
        fields = {**usual, "seed": seed if self.temperature > 0 else None, **self.extra}
        return {name: value for name, value in fields.items() if value is not None}


class PromptingOptions(ChatOptions):
    """The options of the agent `prompting`, beside those of every request.

    Attributes:
        schema: Guided decoding: the reply must have the shape of one (response_format json_schema).
        history: The format of past steps: `as_trained`, every one as a trained model sees it, without the key where the
            log lacks a rationale; `whole_replies`, as replies only those with a rationale, the
            others described in words; `described`, all in words.
        shots: The number of sessions of the train split that are examples.
        shot_seed: Seeds their draw.
        shot_page_characters: The length of the window of each of their pages, around its action.
        style: Whose instructions (shop_env.prompts.PromptConfig).
        typing: The words for typing in them; None: those of the store's log.
        system_file: A text file (UTF-8) in place of the instructions.
    """

    schema: bool = False
    history: History = "whole_replies"
    shots: int = 0
    shot_seed: int = 0
    shot_page_characters: int = 1500
    style: Style = "full"
    typing: Typing | None = None
    system_file: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(0, shots=self.shots)
        check_at_least(1, shot_page_characters=self.shot_page_characters)

    @property
    def prompt(self) -> PromptConfig:
        """The format of the prompt."""
        return PromptConfig(style=self.style, typing=self.typing, system_file=self.system_file)


def parse_options(arguments: dict[str, Any]) -> PromptingOptions:
    """Makes options of the arguments of a spec.

    Raises:
        BadConfig: A key or value is wrong.
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
