"""A model behind an OpenAI-compatible server: messages go out, a Completion comes back or NoAnswer is raised.

The openai client tries again where that may help (no connection, HTTP 408, 409, 429, 5xx), waits as the server asks,
limits the time of each try and pools the connections. What the *model* did is no failure: a refusal, a reply that was
cut at its length, one that is no JSON are its replies. When nothing answers any more, or the limit on tokens is
reached, each further request fails at once. The key, should the server repeat it, is removed from all its texts.
"""

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import openai

from agents.prompting.options import ChatOptions
from replay_sessions.foundation.errors import AgentFailed
from shop_env.prompts import Message

_NO_KEY = "no-key"  # the client needs one; servers without keys ignore it
_MAX_CHARACTERS = 300  # of a server's message
_MIN_FAILURES_IN_A_ROW = 8
_TOO_LONG = ("context_length", "context length", "context size", "maximum context", "too long", "too many tokens")
# What the client raises, or its answer, on a body that is not what the API promises.
_MALFORMED = (AttributeError, IndexError, TypeError, ValueError, RecursionError)
_UNREACHABLE = (
    openai.APIConnectionError,  # a time-out is one
    openai.AuthenticationError,
    openai.PermissionDeniedError,
    openai.NotFoundError,
    openai.RateLimitError,
)


class Completion(NamedTuple):
    """A reply of a model, with what the server says about it.

    Attributes:
        text: Its reply.
        finish_reason: The reason why it ended, in the API's words: stop, length, …
        is_refusal: The server marked the text as a refusal.
        tokens: Read and written; None where the server does not report them (a quarter of its characters counts then).
    """

    text: str
    finish_reason: str = "stop"
    is_refusal: bool = False
    tokens: int | None = None


class NoAnswer(AgentFailed):
    """There is no answer: the name of the openai client's exception, then what the server says."""


class RequestTooLong(NoAnswer):
    """The request does not fit the model's context."""


class Chat:
    """A model that answers requests; threads may share it.

    Attributes:
        counts: Of its answers: `answers`, `cut`, `refused`, `tokens` (read and written), `estimated` (those without
            tokens), and what callers count.
    """

    def __init__(self, options: ChatOptions) -> None:
        self.options = options
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._failures_in_a_row = 0
        self._key = options.key
        self._client = openai.OpenAI(
            base_url=options.base_url,
            api_key=options.key or _NO_KEY,
            max_retries=options.max_retries,
            timeout=options.timeout_s,
            # No redirects: pages go where the user wants them, and nowhere else.
            http_client=openai.DefaultHttpxClient(timeout=options.timeout_s, follow_redirects=False),
        )

    def close(self) -> None:
        """Closes the connections; requests in flight fail."""
        self._client.close()

    def ask(self, messages: Sequence[Message], *, seed: int | None = None, **fields: Any) -> Completion:
        """Sends a request and returns the answer.

        Args:
            seed: Seeds the model's draws, where it draws.
            fields: `response_format`, where there is one; the options add the rest.

        Raises:
            RequestTooLong: The server says so.
            NoAnswer: There is none for another reason.
        """
        self._check_limits()
        options = self.options
        try:
            response = self._client.chat.completions.create(
                model=options.model,
                messages=[],  # in the body as they are: the client takes long to look through messages
                extra_body={"messages": messages, **fields, **options.request_fields(seed)},
            )
            completion = _parse_completion(response)
        except (openai.OpenAIError, *_MALFORMED) as error:
            raise self._failure(error) from None  # the client's exception holds the request, header and all
        self._failures_in_a_row = 0
        self.count(
            answers=1,
            tokens=completion.tokens or (len(str(messages)) + len(completion.text)) // 4,
            estimated=not completion.tokens,
            cut=completion.finish_reason == "length",
            refused=completion.is_refusal,
        )
        if completion.finish_reason == "content_filter":
            raise NoAnswer("content filter: the server removed the reply")
        return completion._replace(text=self._clean(completion.text))

    def count(self, **amounts: int) -> None:
        """Adds to the counts."""
        with self._lock:
            self.counts.update(amounts)

    def remarks(self) -> list[str]:
        """Tells users about all answers so far."""
        counts = self.counts
        remarks = [f"{counts['answers']:,} answers from the server, {counts['tokens']:,} tokens read and written"]
        if counts["estimated"]:
            remarks.append(f"tokens not reported: a quarter of the characters of {counts['estimated']:,} answers")
        if counts["cut"]:
            remarks.append(f"cut at max_new_tokens={self.options.max_new_tokens}: {counts['cut']:,} replies")
        if counts["refused"]:
            remarks.append(f"refused by the model: {counts['refused']:,} replies")
        return remarks

    def _check_limits(self) -> None:
        limit, used = self.options.token_limit, self.counts["tokens"]
        if limit is not None and used >= limit:
            raise NoAnswer(f"token limit: {used:,} tokens are used, and token_limit is {limit:,}")
        max_failures = max(_MIN_FAILURES_IN_A_ROW, 2 * self.options.concurrency)
        if self._failures_in_a_row >= max_failures:
            raise NoAnswer(f"not sent: {self._failures_in_a_row} requests in a row had no answer")

    def _failure(self, error: Exception) -> NoAnswer:
        detail = self._clean(" ".join(str(error).split()))[:_MAX_CHARACTERS]
        if not isinstance(error, openai.OpenAIError):
            return NoAnswer(f"malformed answer: {detail}")
        if isinstance(error, openai.APIStatusError) and error.status_code in (400, 413):
            is_too_long = error.status_code == 413 or any(
                words in f"{error.code} {detail}".lower() for words in _TOO_LONG
            )
            return (RequestTooLong if is_too_long else NoAnswer)(f"{type(error).__name__}: {detail}")
        if isinstance(error, _UNREACHABLE):
            self._failures_in_a_row += 1
        return NoAnswer(f"{type(error).__name__}: {detail}")

    def _clean(self, text: str) -> str:
        """Removes the key, and replaces half a surrogate pair, which no file can hold, with its escape."""
        text = text.encode("utf-8", "backslashreplace").decode()
        return text.replace(self._key, "[key]") if self._key else text


def _parse_completion(response: Any) -> Completion:
    """Reads what the client made of the server's answer, which it does not check."""
    choice = response.choices[0]
    content, refusal = choice.message.content, choice.message.refusal
    text = content or refusal or ""
    if not isinstance(text, str):
        raise TypeError(f"the content is {text!r}, not text")
    return Completion(
        text=text,
        finish_reason=choice.finish_reason,
        is_refusal=bool(refusal and not content),
        tokens=response.usage.total_tokens if response.usage else None,
    )
