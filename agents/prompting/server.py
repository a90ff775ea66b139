"""One try at an OpenAI-compatible server: a request goes out, an Answer comes back or NoAnswer is raised.

The answer is read strictly and by our own record, since the client takes any JSON for an answer: what lacks a reply is
no empty reply. It is read in pieces, so that a server that dribbles or never ends is left in time. The key, should the
server repeat it, is taken out of all that it said.
"""

import json
import ssl
import time
from functools import cache
from typing import Any

import httpx2
import msgspec
import openai

from agents.prompting.account import Answer
from agents.prompting.failures import NoAnswer, failure_of

__all__ = ["Server"]

_NO_KEY = "no-key"  # the client wants one; servers without keys ignore it
_MOST_BYTES = 16 << 20


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
    """A server, as many threads may ask at once.

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
            max_retries=0,  # chat.py tries again, after it has set aside what that may cost
            timeout=timeout_s,
            http_client=openai.DefaultHttpxClient(
                timeout=timeout_s,
                verify=_trusted_certificates(),
                follow_redirects=False,  # pages and key go where the user said, and nowhere else
            ),
        )

    def close(self) -> None:
        self._client.close()

    def ask(self, request: dict[str, Any]) -> Answer:
        """One try.

        Raises:
            NoAnswer: With its cause.
        """
        try:
            return self._answer(self._post(request))
        except Exception as error:
            failure = error if isinstance(error, NoAnswer) else failure_of(error)
            if failure is None:
                raise
            raise self._without_key(failure) from None  # the client's exception holds the request, header and all

    def _post(self, request: dict[str, Any]) -> bytes:
        """The body of the server's answer."""
        must_end = time.monotonic() + self._timeout_s
        content = bytearray()
        create: Any = self._client.chat.completions.with_streaming_response.create  # typed for OpenAI's own fields
        # All as extra fields, which stand in place of the others: the client takes long to look through messages.
        with create(model=request["model"], messages=[], extra_body=request) as response:
            for piece in response.iter_bytes():
                content += piece
                if len(content) > _MOST_BYTES:
                    raise _malformed(f"it is longer than {_MOST_BYTES:,} bytes")
                if time.monotonic() > must_end:
                    told = f"the answer was not whole after {self._timeout_s:g} s (timeout_s)"
                    raise NoAnswer("timed out", told, may_be_charged=True)
        return bytes(content)

    def _answer(self, content: bytes) -> Answer:
        try:
            completion = msgspec.convert(json.loads(content), _Completion)  # msgspec's own reading refuses half a pair
        except (ValueError, RecursionError) as error:
            raise _malformed(f"{error}; it begins {content[:80]!r}") from None
        if not completion.choices:
            raise _malformed("it holds no choice")
        choice, usage = completion.choices[0], completion.usage
        refusal = choice.message.refusal
        if usage is not None and min(usage.prompt_tokens, usage.completion_tokens) < 0:
            raise _malformed(f"it counts {usage}")
        return Answer(
            text=self._clean(choice.message.content or refusal or ""),
            ended=self._clean(choice.finish_reason or "stop"),
            refused=bool(refusal and not choice.message.content),
            input_tokens=usage.prompt_tokens if usage else None,
            output_tokens=usage.completion_tokens if usage else None,
        )

    def _clean(self, text: str) -> str:
        """The text without the key. Half a surrogate pair, which no file can hold, becomes its escape."""
        text = text.encode("utf-8", "backslashreplace").decode()
        return text.replace(self._key, "[key]") if self._key else text

    def _without_key(self, failure: NoAnswer) -> NoAnswer:
        return NoAnswer(
            failure.cause, self._clean(failure.told), wait_s=failure.wait_s, may_be_charged=failure.may_be_charged
        )


@cache
def _trusted_certificates() -> ssl.SSLContext:
    """The client's own, which take a tenth of a second to read."""
    return httpx2.create_ssl_context()


def _malformed(told: str) -> NoAnswer:
    return NoAnswer("malformed answer", told, may_be_charged=True)
