"""A model behind a server, at a price: the stored answer if there is one, else tries until one comes or none will.

    request ─► key ─► Account.answer ──────────────────────────────────────────────────────────► Answer
                  └► reserve ─► Server.send ─► settle ─────────────────────────────────────────► Answer
                        ▲            └► settle ─► wait as the server asks, or ever longer ─► NoAnswer
                        └────────────────────────────┘ another try

Threads may share it; of two with the same request, the second waits for the answer to the first. Each try is reserved
and settled by itself. When nothing answers any more, or the key is refused, the rest of a run is not sent: each further
request fails at once with the same cause, and the next run tries again.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import tenacity

from agents.prompting.account import Account, Cost, format_money, most_tokens
from agents.prompting.answers import FINAL, Answer, NoAnswer
from agents.prompting.options import ServerOptions
from agents.prompting.server import Server

_KEY_VERSION = 1  # raise it when stored answers should not be used any more
_FIRST_WAIT_S = 0.5
_LEAST_FAILURES_IN_A_ROW = 8


def answer_key(base_url: str, request: dict[str, Any], seed: int | None) -> str:
    """The key under which an answer is stored: everything that decides it.

    Args:
        seed: The step's, sent or not: replies to two seeds are two draws. None for greedy requests.
    """
    content = {"version": _KEY_VERSION, "base_url": base_url.rstrip("/"), "request": request, "seed": seed}
    return hashlib.blake2b(msgspec.json.encode(content, order="sorted"), digest_size=20).hexdigest()


class Chat:
    """A model that answers requests; see the module.

    Attributes:
        reuse: Whether stored answers are used.
        counts: Of this object's answers: `sent`, `cached`, `cut`, `refused`, and what callers count besides.
    """

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.reuse = options.reuse
        self.account = Account(options.cache_path, options.spending)
        self.counts: Counter[str] = Counter()
        self._server = Server(options.base_url, options.key, options.timeout_s)
        self._lock = threading.Condition()
        self._pending: set[str] = set()  # keys of requests that other threads are sending
        self._renewed: set[str] = set()  # keys of what this object sent anew (reuse=False)
        self._given_up: NoAnswer | None = None
        self._stopping = threading.Event()
        self._failures_in_a_row = 0
        longest = options.longest_wait_s
        grows = tenacity.wait_exponential(multiplier=_FIRST_WAIT_S) + tenacity.wait_random(0, _FIRST_WAIT_S)
        self._retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(options.tries),
            wait=lambda state: max(
                _wait_s(state.outcome.exception() if state.outcome else None), min(grows(state), longest)
            ),
            retry=tenacity.retry_if_exception(
                lambda error: isinstance(error, NoAnswer) and error.is_transient and _wait_s(error) <= longest
            ),
            sleep=tenacity.sleep_using_event(self._stopping),
            reraise=True,
        )

    def stop(self) -> None:
        """Nothing further is sent or waited for; requests in flight are stored when they end."""
        self._stopping.set()

    def close(self) -> None:
        self._server.close()
        self.account.close()

    def ask(self, fields: dict[str, Any], seed: int | None = None) -> Answer:
        """The answer to a request.

        Args:
            fields: `messages`, and `response_format` where there is one; the options add the rest.
            seed: Seeds the model's draws, where it draws.

        Raises:
            NoAnswer: With its cause.
        """
        request = {**self.options.request_fields(seed), **fields}
        key = answer_key(self.options.base_url, request, seed if self.options.draws else None)
        with self._alone_with(key):
            cached = self.account.answer(key) if self.reuse or key in self._renewed else None
            answer = cached or self._send(key, request)
        self.count("cached" if cached else "sent")
        if answer.ended == "length":
            self.count("cut")
        if answer.refused:
            self.count("refused")
        if answer.ended == "content_filter":
            raise NoAnswer("content filter", "the server removed the reply")
        return answer

    def count(self, name: str) -> None:
        """Adds one to a count."""
        with self._lock:
            self.counts[name] += 1

    def remarks(self) -> list[str]:
        """What users should know of all answers so far, in words."""
        counts, options, spending = self.counts, self.options, self.account.spending()
        remarks = [f"{counts['sent']:,} answers from the server, {counts['cached']:,} from the cache"]
        total = f"of {counts['sent'] + counts['cached']:,} replies"
        if counts["cut"]:
            remarks.append(f"cut at max_new_tokens={options.max_new_tokens}: {counts['cut']:,} {total}")
        if counts["refused"]:
            remarks.append(f"refused by the model: {counts['refused']:,} {total}")
        spent = f"{spending.cost.tokens:,} tokens"
        if options.prices is not None:
            limit = options.spending.money
            spent += f" for {format_money(spending.cost.money)}"
            spent += "" if limit is None else f" of {format_money(limit)}"
        if spending.unknown:
            spent += f", {spending.unknown:,} tries with an unknown end counted at their most"
        return [*remarks, f"{spent} through {self.account.path.name}, all runs together"]

    def _send(self, key: str, request: dict[str, Any]) -> Answer:
        try:
            answer = self._retrying(self._try, key, request)
        except NoAnswer as failure:
            self._note_failure(failure)
            raise
        self._failures_in_a_row = 0
        self._renewed.add(key)
        return answer

    def _try(self, key: str, request: dict[str, Any]) -> Answer:
        if self._stopping.is_set():
            raise NoAnswer("stopped", "the run was stopped")
        if self._given_up is not None:
            raise NoAnswer(self._given_up.cause, f"not sent, after an earlier failure: {self._given_up.detail}")
        reserved = self._cost(*most_tokens(request, self.options.max_new_tokens))
        self.account.reserve(reserved)
        try:
            answer = self._server.send(request)
        except BaseException as error:
            is_free = isinstance(error, NoAnswer) and not error.may_be_charged
            self.account.settle(reserved, Cost(0, 0) if is_free else None)
            raise
        read, wrote = answer.input_tokens, answer.output_tokens
        cost = reserved if read is None or wrote is None else self._cost(read, wrote)
        self.account.settle(reserved, cost, key=key, answer=answer)
        return answer

    def _cost(self, read: int, wrote: int) -> Cost:
        prices = self.options.prices
        return Cost(prices.cost(read, wrote) if prices else 0, read + wrote)

    def _note_failure(self, failure: NoAnswer) -> None:
        """Gives the server up after a final cause, or when nothing has answered for long."""
        with self._lock:
            if self._given_up is None and failure.cause in FINAL:
                self._given_up = failure
            elif failure.cause in ("server gone", "timed out"):
                self._failures_in_a_row += 1
                most = max(_LEAST_FAILURES_IN_A_ROW, 2 * self.options.concurrency)
                if self._given_up is None and self._failures_in_a_row >= most:
                    self._given_up = NoAnswer(
                        failure.cause, f"{most} requests in a row had no answer, the last: {failure.detail}"
                    )

    @contextmanager
    def _alone_with(self, key: str) -> Iterator[None]:
        """Keeps other threads from sending the same until this one has an answer or none."""
        with self._lock:
            self._lock.wait_for(lambda: key not in self._pending)
            self._pending.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._pending.remove(key)
                self._lock.notify_all()


def _wait_s(error: BaseException | None) -> float:
    """How long the server asks to wait."""
    return (error.wait_s or 0.0) if isinstance(error, NoAnswer) else 0.0
