"""What the agent `prompting` can be told: as ?key=value of its spec, or in a TOML file of the same keys.

    prompting?base_url=http://localhost:8000/v1&model=Qwen/Qwen2.5-3B-Instruct
    prompting?options=gpt.toml&temperature=0.6          what is given in the spec goes before the file

`deciding` is the part that decides a reply, with the content of files in place of their names: it identifies a row of
the leaderboard, and through the request it is part of the key under which an answer is kept. All else (how many at
once, how long to wait, how often to try, what it may cost, where answers are kept) may change without asking anew.
"""

import hashlib
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from agents.prompting.prices import Budget, Prices
from replay_sessions.config_errors import what_is_wrong
from replay_sessions.errors import BadConfig
from shop_env.observation import Observation
from shop_env.prompts import PromptConfig, render_prompt

__all__ = ["NOT_DECIDING", "History", "PromptingOptions", "ServerOptions", "read_options"]

History = Literal["as_trained", "whole_replies", "told"]
LimitField = Literal["max_tokens", "max_completion_tokens"]
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


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model is asked, how, and what that may cost.

    Attributes:
        base_url: Where the server's API begins, such as http://localhost:8000/v1.
        model: As the server calls it.
        key_env: The environment variable that holds the key; none is needed where the server asks for none.
        temperature: 0 is greedy; None sends none (models that refuse it).
        max_new_tokens: The most that a reply may have; thinking counts.
        limit_field: What the server calls that limit.
        send_seed: Send each step's seed; False for servers that refuse it. Greedy requests never carry one.
        extra: Further fields of the request, such as {"top_p": 0.9}.
        concurrency: Requests at once.
        timeout_s: The longest that one try may take.
        tries: How often a request is tried where the server is away, busy or faulty.
        longest_wait_s: The longest wait before another try; a server that asks for a longer one is not tried again.
        cache: The file in which answers and what they cost are kept; None: one for each server and model in the
            user's cache folder.
        reuse: False asks anew what was answered before.
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
        self._check_url()
        for name in ("max_new_tokens", "concurrency", "tries"):
            if getattr(self, name) < 1:
                raise BadConfig(f"{name} is {getattr(self, name)}; it must be 1 or more")
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
        _ = self.spending, self.prices  # they check what they are made of

    @property
    def prices(self) -> Prices | None:
        """None where no prices were given: then money is not counted."""
        return Prices.of(self.input_price, self.output_price)

    @property
    def spending(self) -> Budget:
        return Budget.of(self.budget, self.budget_tokens, priced=self.prices is not None)

    @property
    def key(self) -> str | None:
        """What the environment holds, if anything; it is never kept in a record."""
        return os.environ.get(self.key_env, "").strip() or None

    @property
    def cache_path(self) -> Path:
        if self.cache is not None:
            return Path(self.cache)
        folder = os.environ.get("SHOP_R1_CACHE")
        user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shop_r1"
        name = re.sub(r"[^\w.-]+", "_", f"{urlsplit(self.base_url).netloc}-{self.model}").strip("._")
        return (Path(folder) if folder else user) / "asked" / f"{name[:150]}.sqlite"

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

    def _check_url(self) -> None:
        try:
            parts = urlsplit(self.base_url)
            odd = parts.scheme not in ("http", "https") or not parts.hostname or (parts.port or 1) < 1
        except ValueError:
            odd = True
        if odd:
            raise BadConfig("base_url must be where a server's API begins, such as http://localhost:8000/v1")
        if parts.username or parts.password or parts.query or parts.fragment:  # not repeated here: it may hold a key
            raise BadConfig(
                "base_url must end with its path, without a name, password or ?query: a key comes from the environment "
                "variable that key_env names"
            )


class PromptingOptions(ServerOptions, frozen=True, kw_only=True):
    """What the agent `prompting` can be told, beside what every request can.

    Attributes:
        schema: Guided decoding: the reply must have the shape of one (response_format json_schema).
        choice: The model chooses among the page's candidates by number, in place of writing an action.
        history: How past steps are shown: `as_trained`, every one as the reply that a trained model would have
            written, with "" for a rationale that the log lacks; `whole_replies`, as replies only those with a
            rationale, the others told in words; `told`, all in words. None: `told` with `choice`, else `whole_replies`:
            a model that was never trained on "" copies it.
        shorten: Where the server says that a request is too long, send it again without the earliest page that is still
            shown, and so on (Customer-R1, section 4.1; as models trained here are shown too long a session).
        shots: So many sessions of the train split are shown as examples.
        shot_seed: Which.
        shot_page_characters: How much of each of their pages, around what was done on it.
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
        if self.shots < 0:
            raise BadConfig(f"shots is {self.shots}; it must be 0 or more")
        if self.shot_page_characters < 1:
            raise BadConfig(f"shot_page_characters is {self.shot_page_characters}; it must be 1 or more")
        if self.choice and self.history not in (None, "told"):
            raise BadConfig(
                f"history is {self.history!r}, but with choice=true the model never writes an action, so past steps "
                "can only be told: leave history out"
            )

    @property
    def shown_history(self) -> History:
        return self.history or ("told" if self.choice else "whole_replies")

    @property
    def prompt(self) -> PromptConfig:
        return PromptConfig(system_file=self.system_file)

    def deciding(self) -> dict[str, Any]:
        """Everything of it that decides a reply, as JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        found = {name: value for name, value in found.items() if name not in NOT_DECIDING}
        instructions, *_ = render_prompt(_ANY_PAGE, self.prompt)
        return found | {
            "base_url": self.base_url.rstrip("/"),
            "history": self.shown_history,
            "system_file": self.system_file and Path(self.system_file).name,
            "instructions": hashlib.blake2b(instructions["content"].encode(), digest_size=16).hexdigest(),
        }


_ANY_PAGE: Observation = {"page": "", "history": (), "persona": "persona", "goal": "goal", "step": 0}
_HOW_IT_IS_ASKED = {"key_env", "concurrency", "timeout_s", "tries", "longest_wait_s", "cache", "reuse"}
_WHAT_IT_COSTS = {"input_price", "output_price", "budget", "budget_tokens"}
NOT_DECIDING = frozenset(_HOW_IT_IS_ASKED | _WHAT_IT_COSTS)


def read_options(file: str | None, arguments: dict[str, Any]) -> PromptingOptions:
    """The options of a file, if one is given, with the arguments in place of what it says.

    Raises:
        BadConfig: The file cannot be read, or a key or value is wrong; what is told never holds a value of the file.
    """
    given: dict[str, Any] = {}
    if file is not None:
        try:
            given = tomllib.loads(Path(file).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadConfig(f"options '{file}' cannot be read as TOML: {error}") from error
    given |= arguments
    missing = [name for name in ("base_url", "model") if name not in given]
    if missing:
        raise BadConfig(
            f"agent 'prompting' needs {' and '.join(missing)}: "
            "prompting?base_url=http://localhost:8000/v1&model=NAME (or ?options=FILE.toml)"
        )
    try:
        return msgspec.convert(given, PromptingOptions)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, BadConfig):
            raise error.__cause__ from None
        where = f"options '{file}'" if file is not None else "agent 'prompting'"
        raise BadConfig(f"{where}: {what_is_wrong(error, PromptingOptions)}") from error
