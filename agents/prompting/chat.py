"""Sends messages to a model behind an OpenAI-compatible server, and returns a Completion or raises NoAnswer.

The openai client retries if that may help (no connection, HTTP 408, 409, 429, 5xx), waits as the server requests,
limits the time of each try and pools the connections. The model's behaviour is no failure: refusals, replies that were
cut at their length and replies that are no JSON are replies. If the server stops answering, or the limit on tokens is
reached, each further request fails at once. If the server repeats the key, it is removed from its texts.
"""

import re
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import openai

from agents.prompting.options import ChatOptions
from replay_sessions.foundation.errors import AgentFailed
from shop_env.prompts import Message

_SHORTEST_KEY = 12  # shorter ones are placeholders such as "none", which replies may hold
_MAX_CHARACTERS = 300  # of a server's message
_MIN_FAILURES_IN_A_ROW = 8
_TOO_LONG = re.compile(
    "context.length|context size|maximum (context|model length|number of tokens)|too (long|many tokens)", re.IGNORECASE
)
# Errors of the client, or of reading its answer, if the body does not follow the API.
_MALFORMED = (AttributeError, IndexError, TypeError, ValueError, RecursionError)
_UNREACHABLE = (
    openai.APIConnectionError,  # a time-out is one
    openai.AuthenticationError,
    openai.PermissionDeniedError,
    openai.NotFoundError,
    openai.RateLimitError,
)


class Completion(NamedTuple):
    """A reply of a model, with the server's data about it.

    Attributes:
        text: The text of the reply.
        finish_reason: The reason why the reply ended, in the API's words: stop, length, …
        is_refusal: Whether the server marked the text as a refusal.
        tokens: The number of tokens read and written; None if the server does not report it (a quarter of the number of
            characters is counted instead).
    """

    text: str
    finish_reason: str = "stop"
    is_refusal: bool = False
    tokens: int | None = None


class NoAnswer(AgentFailed):
    """A request without an answer; the text is the name of the openai client's exception and the server's message."""


class RequestTooLong(NoAnswer):
    """A request that does not fit the model's context."""


class Chat:
    """A model that answers requests; threads may share it.

    Attributes:
        counts: The numbers of `answers`, of `cut` and `refused` ones, of `tokens` (read and written) and of `estimated`
            answers (the server did not report tokens), and counts of callers.
    """

    def __init__(self, options: ChatOptions) -> None:
        self.options = options
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._failures_in_a_row = 0
        self._key = options.key
        self._client = openai.OpenAI(
            base_url=options.base_url,
            api_key=self._key,
            max_retries=options.max_retries,
            timeout=options.timeout_s,
            # No redirects, so that pages are only sent to the address that the user gave.
            http_client=openai.DefaultHttpxClient(follow_redirects=False),
        )

    def close(self) -> None:
        """Closes the connections; requests in flight fail."""
        self._client.close()

    def ask(self, messages: Sequence[Message], *, seed: int | None = None, **fields: Any) -> Completion:
        """Sends a request and returns the answer.

        Args:
            seed: The seed of the model's sampling.
            fields: Fields of the request such as `response_format`; the options add the others.

        Raises:
            RequestTooLong: The server rejects the request as too long.
            NoAnswer: The request has no answer for another reason.
        """
        self._check_limits()
        options = self.options
        try:
            response = self._client.chat.completions.create(
                model=options.model,
                messages=[],  # they are in extra_body, because the client takes long to transform messages
                extra_body={"messages": messages, **fields, **options.request_fields(seed)},
            )
            completion = _parse_completion(response)
        except (openai.OpenAIError, *_MALFORMED) as error:
            raise self._failure(error) from None  # the client's exception holds the request and its header with the key
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
        """Adds the amounts to the counts."""
        with self._lock:
            self.counts.update(amounts)

    def remarks(self) -> list[str]:
        """Returns sentences about all answers so far."""
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
        if self._failures_in_a_row >= max(_MIN_FAILURES_IN_A_ROW, 2 * self.options.concurrency):
            raise NoAnswer(f"not sent: {self._failures_in_a_row} requests in a row had no answer")

    def _failure(self, error: Exception) -> NoAnswer:
        detail = self._clean(" ".join(str(error).split()))[:_MAX_CHARACTERS]
        if not isinstance(error, openai.OpenAIError):
            return NoAnswer(f"malformed answer: {detail}")
        if isinstance(error, openai.APIStatusError) and error.status_code in (400, 413):
            is_too_long = error.status_code == 413 or _TOO_LONG.search(f"{error.code} {detail}")
            return (RequestTooLong if is_too_long else NoAnswer)(f"{type(error).__name__}: {detail}")
        if isinstance(error, _UNREACHABLE):
            self._failures_in_a_row += 1
        return NoAnswer(f"{type(error).__name__}: {detail}")

    def _clean(self, text: str) -> str:
        """Removes the key, and escapes unpaired surrogates, which no file can hold."""
        text = text.encode("utf-8", "backslashreplace").decode()
        return text if len(self._key) < _SHORTEST_KEY else text.replace(self._key, "[key]")


def _parse_completion(response: Any) -> Completion:
    """Parses the client's response, which the client does not validate."""
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
