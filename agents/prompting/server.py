"""One try at an OpenAI-compatible server: a request goes out, an Answer comes back or NoAnswer is raised.

The answer is decoded strictly and by our own record, since the client takes any JSON for an answer: a body without a
reply is no empty reply. It is read in chunks, so that a server that dribbles or never ends is left in time. The key,
should the server repeat it, is removed from all its texts.
"""

import json
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import httpx2
import msgspec
import openai

from agents.prompting.answers import Answer, Cause, NoAnswer

_NO_KEY = "no-key"  # the client needs one; servers without keys ignore it
_MOST_BYTES = 16 << 20
_MOST_CHARACTERS = 300  # of a server's message
_TOO_LONG = ("context_length", "context length", "context size", "maximum context", "too long", "too many tokens")
_FILTERED = ("content_filter", "content management policy", "content_policy")
_CAUSES: dict[int, Cause] = {
    401: "refused access",
    402: "quota used up",
    403: "refused access",
    408: "server error",
    409: "server error",
    413: "too long",
    425: "server error",
    429: "too many requests",
}
_REMEDIES: dict[Cause, str] = {
    "refused access": " (the key comes from the environment variable that key_env names)",
    "no such model": " (is base_url right, and is that the server's name for the model?)",
}


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


class Server:
    """A server; threads may share it.

    Args:
        base_url: Where its API begins.
        key: Sent in the header of each request and nowhere else; None: none.
        timeout_s: The longest that one try may take.
    """

    def __init__(self, base_url: str, key: str | None, timeout_s: float) -> None:
        self._key = key
        self._timeout_s = timeout_s
        self._client = openai.OpenAI(
            base_url=base_url,
            api_key=key or _NO_KEY,
            # Not the client's retries: each try needs a reservation of its own, a malformed answer another try, and
            # Ctrl-C an end of the waiting (chat.py).
            max_retries=0,
            timeout=timeout_s,
            http_client=openai.DefaultHttpxClient(
                timeout=timeout_s,
                verify=_trusted_certificates(),
                follow_redirects=False,  # pages and key go where the user wants them, and nowhere else
            ),
        )

    def close(self) -> None:
        self._client.close()

    def send(self, request: dict[str, Any]) -> Answer:
        """One try.

        Raises:
            NoAnswer: With its cause.
        """
        try:
            return self._parse(self._post(request))
        except Exception as error:
            failure = error if isinstance(error, NoAnswer) else _failure_of(error)
            if failure is None:
                raise
            # Not from the client's exception, which holds the request, header and all.
            raise NoAnswer(
                failure.cause,
                self._clean(failure.detail),
                wait_s=failure.wait_s,
                may_be_charged=failure.may_be_charged,
            ) from None

    def _post(self, request: dict[str, Any]) -> bytes:
        """The body of the server's answer."""
        deadline = time.monotonic() + self._timeout_s
        content = bytearray()
        create: Any = self._client.chat.completions.with_streaming_response.create  # typed for OpenAI's own fields
        # All as extra fields, which replace the others: the client takes long to look through messages.
        with create(model=request["model"], messages=[], extra_body=request) as response:
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > _MOST_BYTES:
                    raise _malformed(f"it is longer than {_MOST_BYTES:,} bytes")
                if time.monotonic() > deadline:
                    detail = f"the answer was not complete after {self._timeout_s:g} s (timeout_s)"
                    raise NoAnswer("timed out", detail, may_be_charged=True)
        return bytes(content)

    def _parse(self, content: bytes) -> Answer:
        try:
            completion = msgspec.convert(json.loads(content), _Completion)  # msgspec's own parser refuses half a pair
        except (ValueError, RecursionError) as error:
            raise _malformed(f"{error}; it begins {content[:80]!r}") from None
        if not completion.choices:
            raise _malformed("it holds no choice")
        choice, usage = completion.choices[0], completion.usage
        reply, refusal = choice.message.content, choice.message.refusal
        if usage is not None and min(usage.prompt_tokens, usage.completion_tokens) < 0:
            raise _malformed(f"it counts {usage}")
        return Answer(
            text=self._clean(reply or refusal or ""),
            ended=self._clean(choice.finish_reason or "stop"),
            refused=bool(refusal and not reply),
            input_tokens=usage.prompt_tokens if usage else None,
            output_tokens=usage.completion_tokens if usage else None,
        )

    def _clean(self, text: str) -> str:
        """The text without the key. Half a surrogate pair, which no file can hold, becomes its escape."""
        text = text.encode("utf-8", "backslashreplace").decode()
        return text.replace(self._key, "[key]") if self._key else text


@cache
def _trusted_certificates() -> ssl.SSLContext:
    """The client's own, which take a tenth of a second to read."""
    return httpx2.create_ssl_context()


def _malformed(detail: str) -> NoAnswer:
    return NoAnswer("malformed answer", detail, may_be_charged=True)


def _failure_of(error: Exception) -> NoAnswer | None:
    """What an exception of the client means; None where neither the server nor the way to it failed."""
    if isinstance(error, openai.APIStatusError):
        return _failure_of_status(error)
    reason: BaseException = error
    while isinstance(reason.__cause__, httpx2.HTTPError):  # the client's own exceptions come from the connection's
        reason = reason.__cause__
    detail = _shorten(str(reason)) or type(reason).__name__
    if isinstance(reason, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol):
        return NoAnswer("server gone", f"there is no connection to the server ({detail})")
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return NoAnswer("timed out", "the server did not answer in time (timeout_s)", may_be_charged=True)
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError | httpx2.StreamError):
        return NoAnswer("server gone", f"the connection was cut ({detail})", may_be_charged=True)
    return None


def _failure_of_status(error: openai.APIStatusError) -> NoAnswer:
    status, body = error.status_code, error.body
    message = _shorten(str((body.get("message") if isinstance(body, dict) else body) or "no message"))
    text = f"{error.code or ''} {error.type or ''} {message}".lower()
    cause = _CAUSES.get(status, "server error" if status >= 500 else "bad request")
    if status == 429 and "insufficient_quota" in text:
        cause = "quota used up"
    elif cause == "bad request" and any(words in text for words in _TOO_LONG):
        cause = "too long"
    elif cause == "bad request" and any(words in text for words in _FILTERED):
        cause = "content filter"
    elif status == 404:
        cause = "no such model"
    return NoAnswer(
        cause, f"HTTP {status}, {message}{_REMEDIES.get(cause, '')}", wait_s=retry_after_s(error.response.headers)
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the server asks to wait: Retry-After in seconds or as a date, or retry-after-ms.

    >>> retry_after_s({"retry-after": "2.5"}), retry_after_s({"retry-after": "soon"})
    (2.5, None)
    """
    text = headers.get("retry-after", "")
    with suppress(ValueError):
        return max(0.0, float(headers["retry-after-ms"]) / 1000 if "retry-after-ms" in headers else float(text))
    with suppress(ValueError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None


def _shorten(text: str) -> str:
    """On one line and not too long."""
    return " ".join(text.split())[:_MOST_CHARACTERS]
