"""The options of the agent `prompting`: as ?key=value of its spec, or in a TOML file of the same keys.

    prompting?base_url=http://localhost:8000/v1&model=Qwen/Qwen2.5-3B-Instruct
    prompting?options=gpt.toml&temperature=0.6          the spec overrides the file

`deciding` is the part that decides a reply, with the content of files in place of their names: it identifies a row of
the leaderboard, and through the request it is part of the key under which an answer is stored. All else (concurrency,
time limits, tries, budget, cache) may change, and stored answers stay valid.
"""

import hashlib
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Literal, get_type_hints
from urllib.parse import urlsplit

import msgspec

from agents.prompting.account import Budget, Prices
from replay_sessions.foundation.config_errors import convert_fields
from replay_sessions.foundation.durable_files import cache_folder
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Config
from shop_env.observation import Observation
from shop_env.prompts import PromptConfig, render_prompt

History = Literal["as_trained", "whole_replies", "described"]
LimitField = Literal["max_tokens", "max_completion_tokens"]
_URL = r"https?://([\w.-]+|\[[\da-fA-F:.]+\])(:0*[1-9]\d{0,4})?(/[^\s?#@]*)?"
# Fields of a request that `extra` may not hold, and the option that sets them, where there is one.
_OURS = {
    "model": "model",
    "messages": None,
    "temperature": "temperature",
    "seed": "send_seed",
    "max_tokens": "max_new_tokens",
    "max_completion_tokens": "max_new_tokens",
    "response_format": "schema",
    "n": None,
    "best_of": None,
    "stream": None,
}


class ServerOptions(Config):
    """Which model to use, how to call it, and what that may cost.

    Attributes:
        base_url: Where the server's API begins, such as http://localhost:8000/v1.
        model: As the server calls it.
        key_env: The environment variable that holds the key; none is needed where the server asks for none.
        temperature: 0 is greedy; None sends none (models that refuse it).
        max_new_tokens: The most that a reply may have; thinking counts.
        limit_field: The server's name for that limit.
        send_seed: Send each step's seed; False for servers that refuse it. Greedy requests never carry one.
        extra: Further fields of the request, such as {"top_p": 0.9}.
        concurrency: Requests at once.
        timeout_s: The longest that one try may take.
        tries: How often a request is tried where the server is away, busy or faulty.
        longest_wait_s: The longest wait before another try; a server that asks for a longer one is not tried again.
        cache: The file of answers and of their cost; None: one for each server and model in the user's cache folder.
        reuse: False sends requests anew that have a stored answer.
        input_price: Of a million tokens, in the currency of `budget`.
        output_price: Likewise.
        budget: The most that all requests through `cache` may cost together, over all runs; None: no limit.
        budget_tokens: The most tokens, read and written, likewise.
    """

    base_url: str
    model: str
    key_env: str = "OPENAI_API_KEY"
    temperature: float | None = 0.0
    max_new_tokens: int = 512
    limit_field: LimitField = "max_tokens"
    send_seed: bool = True
    extra: dict[str, Any] = {}
    concurrency: int = 16
    timeout_s: float = 120.0
    tries: int = 6
    longest_wait_s: float = 60.0
    cache: str | None = None
    reuse: bool = True
    input_price: float | None = None
    output_price: float | None = None
    budget: float | None = None
    budget_tokens: int | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(_URL, self.base_url):  # not repeated in the message: it may hold a key
            raise BadConfig(
                "base_url must be where a server's API begins, such as http://localhost:8000/v1, and end with its "
                "path, without a name, password or ?query: a key comes from the environment variable that key_env names"
            )
        self._check_at_least(1, "max_new_tokens", "concurrency", "tries")
        for name in ("timeout_s", "longest_wait_s"):
            if not 0 < getattr(self, name) < float("inf"):
                raise BadConfig(f"{name} is {getattr(self, name)}; it must be a number of seconds above 0")
        if self.temperature is not None and not 0 <= self.temperature < float("inf"):
            raise BadConfig(f"temperature is {self.temperature}; it must be 0 (greedy) or more, or null to send none")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", self.key_env):
            raise BadConfig(
                "key_env must be the name of an environment variable, such as OPENAI_API_KEY, and not a key"
            )
        for name in self.extra.keys() & _OURS.keys():
            remedy = f"use the option {_OURS[name]}" if _OURS[name] else "it cannot be set"
            raise BadConfig(f"extra.{name} is a field that the agent fills itself: {remedy}")
        _ = self.spending, self.prices  # they check their parts

    def _check_at_least(self, least: int, *names: str) -> None:
        for name in names:
            if getattr(self, name) < least:
                raise BadConfig(f"{name} is {getattr(self, name)}; it must be {least} or more")

    @property
    def prices(self) -> Prices | None:
        """None where no prices were given: then money is not counted."""
        return Prices.of(self.input_price, self.output_price)

    @property
    def spending(self) -> Budget:
        return Budget.of(self.budget, self.budget_tokens, priced=self.prices is not None)

    @property
    def key(self) -> str | None:
        """From the environment, if it is there; never part of a record."""
        return os.environ.get(self.key_env, "").strip() or None

    @property
    def cache_path(self) -> Path:
        if self.cache is not None:
            return Path(self.cache)
        name = re.sub(r"[^\w.-]+", "_", f"{urlsplit(self.base_url).netloc}-{self.model}").strip("._")
        return cache_folder() / "asked" / f"{name[:150]}.sqlite"

    def request_fields(self, seed: int | None) -> dict[str, Any]:
        """The fields of a request, but for its messages and format."""
        request: dict[str, Any] = {"model": self.model, self.limit_field: self.max_new_tokens, **self.extra}
        if self.temperature is not None:
            request["temperature"] = self.temperature
        if self.draws and self.send_seed and seed is not None:
            request["seed"] = seed
        return request

    @property
    def draws(self) -> bool:
        """Whether replies to one request may differ from seed to seed."""
        return self.temperature != 0


class PromptingOptions(ServerOptions):
    """The options of the agent `prompting`, beside those of every request.

    Attributes:
        schema: Guided decoding: the reply must have the shape of one (response_format json_schema).
        choice: The model chooses among the page's candidates by number, in place of writing an action.
        history: The format of past steps: `as_trained`, every one as the reply that a trained model would have written,
            with "" for a rationale that the log lacks; `whole_replies`, as replies only those with a rationale, the
            others described in words; `described`, all in words. None: `described` with `choice`, else
            `whole_replies`: a model that was never trained on "" copies it.
        shorten: Where the server rejects a request as too long, send it again without the earliest page that it still
            has, and so on (Customer-R1, section 4.1; as models trained here get too long a session).
        shots: The number of sessions of the train split that are examples.
        shot_seed: Seeds their draw.
        shot_page_characters: The length of the window of each of their pages, around its action.
        system_file: A text file (UTF-8) in place of the instructions.
    """

    schema: bool = False
    choice: bool = False
    history: History | None = None
    shorten: bool = True
    shots: int = 0
    shot_seed: int = 0
    shot_page_characters: int = 1500
    system_file: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_at_least(0, "shots")
        self._check_at_least(1, "shot_page_characters")
        if self.choice and self.history not in (None, "described"):
            raise BadConfig(
                f"history is {self.history!r}, but with choice=true the model never writes an action, so past steps "
                "can only be described: leave history out"
            )

    @property
    def history_format(self) -> History:
        return self.history or ("described" if self.choice else "whole_replies")

    @property
    def prompt(self) -> PromptConfig:
        return PromptConfig(system_file=self.system_file)

    def deciding(self) -> dict[str, Any]:
        """Everything of it that decides a reply, as JSON values."""
        fields = {name: value for name, value in msgspec.to_builtins(self).items() if name not in NOT_DECIDING}
        instructions, *_ = render_prompt(_ANY_PAGE, self.prompt)
        return fields | {
            "base_url": self.base_url.rstrip("/"),
            "history": self.history_format,
            "system_file": self.system_file and Path(self.system_file).name,
            "instructions": hashlib.blake2b(instructions["content"].encode(), digest_size=16).hexdigest(),
        }


_ANY_PAGE: Observation = {"page": "", "history": (), "persona": "persona", "goal": "goal", "step": 0}
NOT_DECIDING = frozenset({"key_env", "concurrency", "timeout_s", "tries", "longest_wait_s", "cache", "reuse"}) | {
    "input_price",
    "output_price",
    "budget",
    "budget_tokens",
}


def read_options(file: str | None, arguments: dict[str, Any]) -> PromptingOptions:
    """The options of a file, if there is one, with the arguments in place of its values.

    Raises:
        BadConfig: The file cannot be read, or a key or value is wrong; the message never holds a value of the file.
    """
    options: dict[str, Any] = {}
    if file is not None:
        try:
            options = tomllib.loads(Path(file).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadConfig(f"options '{file}' cannot be read as TOML: {error}") from error
    hints = get_type_hints(PromptingOptions)
    options |= {
        name: str(value) if hints.get(name) is str and type(value) in (int, float) else value  # `model=404`
        for name, value in arguments.items()
    }
    if missing := [name for name in ("base_url", "model") if name not in options]:
        raise BadConfig(
            f"agent 'prompting' needs {' and '.join(missing)}: "
            "prompting?base_url=http://localhost:8000/v1&model=NAME (or ?options=FILE.toml)"
        )
    where = f"options '{file}'" if file is not None else "agent 'prompting'"
    return convert_fields(options, PromptingOptions, where)
