"""A model's answer, or the reason why there is none: one of a few causes, and whether the server may have charged.

What the *model* did is no failure: a refusal, a reply that was cut at its length, one that is no JSON are its replies.
"""

from typing import Literal, get_args

from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.foundation.records import Config

Cause = Literal[
    "too long",  # the request does not fit the model's context
    "content filter",  # the server's, not the model's: it refused the request or removed the reply
    "refused access",  # no key, a wrong one, or not for this model
    "no such model",
    "quota used up",
    "bad request",  # an option that the server does not take, most often
    "too many requests",
    "timed out",
    "server gone",  # no connection, or cut before the answer was complete
    "server error",
    "malformed answer",  # the body is not what the API promises
    "budget used up",
    "stopped",
]
CAUSES: tuple[Cause, ...] = get_args(Cause)
# After these no other request will fare better: the rest of the run is not sent.
FINAL = frozenset[Cause]({"refused access", "no such model", "quota used up"})
_TRANSIENT = frozenset[Cause]({"too many requests", "timed out", "server gone", "server error", "malformed answer"})


class Answer(Config):
    """What a model answered.

    Attributes:
        text: Its reply.
        ended: Why it stopped, in the API's words: stop, length, content_filter, …
        refused: Whether the server marked the text as a refusal.
        input_tokens: How many it read; None where the server did not report it.
        output_tokens: How many it wrote.
    """

    text: str
    ended: str
    refused: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None


class NoAnswer(AgentFailed):
    """There is no answer, for one of the causes above.

    Attributes:
        detail: The cause at more length.
        wait_s: How long the server asks to wait before another try, where it does.
        may_be_charged: Whether the server may have worked, and charged, for what never arrived complete.
    """

    def __init__(self, cause: Cause, detail: str, *, wait_s: float | None = None, may_be_charged: bool = False) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        self.detail = detail
        self.wait_s = wait_s
        self.may_be_charged = may_be_charged

    @property
    def is_transient(self) -> bool:
        """Whether another try may help."""
        return self.cause in _TRANSIENT
