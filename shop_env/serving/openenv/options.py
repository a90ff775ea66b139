"""The options of the server; this module does not need the extra `openenv`."""

import re

from replay_sessions.foundation.errors import BadConfig, check_at_least, did_you_mean
from shop_env.replies import Extraction
from shop_env.serving.tasks import SPLIT_CHOICES, TaskOptions


class ServerOptions(TaskOptions):
    """Serves the env to OpenEnv's clients, over HTTP and WebSocket on one port.

      shop-r1 serve openenv
      shop-r1 serve openenv --store stores/mine --splits train \\
        --reward no_dars --context.persona none

    Each client has a separate session. A replayed step is a task of one turn:
    reset(split=…, index=…) shows it, step({"reply": …}) scores it and ends it.

    The first line on standard output says where the server listens.

    Attributes:
        splits: The splits that clients may request (also `all`); the first is the default.
        reward: The reward preset.
        extraction: How an action is read from a reply: `strict` accepts only the JSON object, `lenient` finds it in
            fences, behind <think>, or between other text.
        host: The address to listen on. Without a token, everyone who reaches it can read the store.
        hosts: Host names that clients use beside localhost and numeric addresses. Requests for other names, and from
            pages of other sites, are refused.
        token: The first part of every path (http://HOST:PORT/TOKEN); requests without it are refused.
        port: The port; 0 takes a free one.
        max_sessions: The largest number of connected clients.
        idle_timeout_s: Seconds after which a client without requests loses its session.
    """

    splits: tuple[str, ...] = ("train", "validation", "test")
    reward: str = "shop_r1"
    extraction: Extraction = "strict"
    host: str = "127.0.0.1"
    hosts: tuple[str, ...] = ()
    token: str | None = None
    port: int = 8000
    max_sessions: int = 64
    idle_timeout_s: float = 1800.0

    def __post_init__(self) -> None:
        for split in self.splits:
            if split not in SPLIT_CHOICES:
                raise BadConfig(f"--splits names {split!r}. {did_you_mean(split, SPLIT_CHOICES)}")
        if not self.splits:
            raise BadConfig("--splits names no split; for example --splits train validation")
        if self.token is not None and not re.fullmatch(r"[\w-]{16,}", self.token):
            raise BadConfig("--token must be 16 or more letters, digits, - or _, for it is a part of an address")
        check_at_least(1, max_sessions=self.max_sessions)
        if not 0 < self.idle_timeout_s < float("inf"):
            raise BadConfig(f"--idle-timeout-s is {self.idle_timeout_s}; it must be a number of seconds above 0")
