"""Why there is no answer: one of a few causes, whether another try may help, and whether the server may have charged.

    what the client raised, or an answer that is none ─► NoAnswer ─► tried again (chat.py) ─► a step with its error

What the *model* did is no failure: a refusal, a reply that was cut at its length, one that is no JSON are its replies.
"""

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Literal, get_args

import httpx2
import openai

from replay_sessions.errors import AgentFailed

__all__ = ["FINAL", "Cause", "NoAnswer", "failure_of", "retry_after_s"]

Cause = Literal[
    "too long",  # the request does not fit the model's context
    "content filter",  # the server's, not the model's: it refused the request or took the reply away
    "refused access",  # no key, a wrong one, or not for this model
    "no such model",
    "quota used up",
    "bad request",  # an option that the server does not take, most often
    "too many requests",
    "timed out",
    "server gone",  # no connection, or cut before the answer was whole
    "server error",
    "malformed answer",  # what came is not what the API promises
    "budget used up",
    "stopped",
]
CAUSES: tuple[Cause, ...] = get_args(Cause)
# After these no other request will fare better: the rest of the run is not sent.
FINAL: frozenset[Cause] = frozenset({"refused access", "no such model", "quota used up"})
_MAY_PASS: frozenset[Cause] = frozenset(
    {"too many requests", "timed out", "server gone", "server error", "malformed answer"}
)
_TOLD_CHARACTERS = 300
_TOO_LONG = ("context_length", "context length", "context size", "maximum context", "too long", "too many tokens")
_FILTERED = ("content_filter", "content management policy", "content_policy")


class NoAnswer(AgentFailed):
    """There is no answer, for a cause of the vocabulary above.

    Attributes:
        told: The cause at more length.
        wait_s: How long the server asks to wait before another try, where it does.
        may_be_charged: Whether the server may have worked, and charged, for what never arrived whole.
    """

    def __init__(self, cause: Cause, told: str, *, wait_s: float | None = None, may_be_charged: bool = False) -> None:
        super().__init__(f"{cause}: {told}")
        self.cause = cause
        self.told = told
        self.wait_s = wait_s
        self.may_be_charged = may_be_charged

    @property
    def may_pass(self) -> bool:
        """Whether another try may help."""
        return self.cause in _MAY_PASS


def failure_of(error: Exception) -> NoAnswer | None:
    """What an exception of the client means; None where it is no failure of the server or the way to it."""
    if isinstance(error, openai.APIStatusError):
        return _of_status(error)
    reason = _innermost(error)
    if isinstance(reason, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol):
        return NoAnswer("server gone", f"there is no connection to the server ({_in_words(reason)})")
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return NoAnswer("timed out", "the server did not answer in time (timeout_s)", may_be_charged=True)
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError | httpx2.StreamError):
        return NoAnswer("server gone", f"the connection was cut ({_in_words(reason)})", may_be_charged=True)
    return None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the server asks to wait: Retry-After in seconds or as a date, or retry-after-ms.

    >>> retry_after_s({"retry-after": "2.5"}), retry_after_s({"retry-after": "soon"})
    (2.5, None)
    """
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return max(0.0, float(milliseconds) / 1000)
        if (given := headers.get("retry-after")) is None:
            return None
        return max(0.0, float(given))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError):
        return None


def _of_status(error: openai.APIStatusError) -> NoAnswer:
    code, said = error.status_code, _said(error)
    found = f"{error.code or ''} {error.type or ''} {said}".lower()
    told = f"HTTP {code}, {said}"
    if code in (401, 403):
        return NoAnswer("refused access", f"{told} (the key comes from the environment variable that key_env names)")
    if code == 429 and "insufficient_quota" in found:
        return NoAnswer("quota used up", told)
    if code == 402:
        return NoAnswer("quota used up", told)
    if code in (408, 409, 425, 429):
        return NoAnswer("too many requests" if code == 429 else "server error", told, wait_s=_wait(error))
    if code >= 500:
        return NoAnswer("server error", told, wait_s=_wait(error))
    if code == 413 or any(words in found for words in _TOO_LONG):
        return NoAnswer("too long", told)
    if any(words in found for words in _FILTERED):
        return NoAnswer("content filter", told)
    if code == 404:
        return NoAnswer("no such model", f"{told} (is base_url right, and does the server call the model so?)")
    return NoAnswer("bad request", told)


def _wait(error: openai.APIStatusError) -> float | None:
    return retry_after_s(error.response.headers)


def _said(error: openai.APIStatusError) -> str:
    """What the server said, on one line and not too long."""
    body = error.body
    said = body.get("message") if isinstance(body, dict) else body
    return " ".join(str(said or "without a word").split())[:_TOLD_CHARACTERS]


def _innermost(error: Exception) -> BaseException:
    """What the client's own exceptions come from: the connection's exception."""
    reason: BaseException = error
    while isinstance(reason.__cause__, httpx2.HTTPError):
        reason = reason.__cause__
    return reason


def _in_words(error: BaseException) -> str:
    return " ".join(str(error).split())[:_TOLD_CHARACTERS] or type(error).__name__
