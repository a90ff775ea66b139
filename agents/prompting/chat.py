"""A model behind a server, asked at a price: the kept answer if there is one, else tries until one comes or none will.

    request ─► key ─► Account.answer ──────────────────────────────────────────────────────────► Answer
                  └► reserve ─► Server.ask ─► keep ───────────────────────────────────────────► Answer
                        ▲            └► settle ─► wait as the server asks, or ever longer ─► NoAnswer
                        └────────────────────────────┘ another try

Threads may ask at once; of two that ask the same, the second waits for the answer to the first. Each try is reserved
and booked by itself. When nothing answers any more, or the key is refused, the rest of a run is not sent: each further
request fails at once with the same cause, and the next run asks again.
"""

import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import tenacity

from agents.prompting.account import Account, Answer, in_money
from agents.prompting.failures import FINAL, NoAnswer
from agents.prompting.options import ServerOptions
from agents.prompting.prices import Cost, most_tokens
from agents.prompting.server import Server

__all__ = ["Chat", "answer_key"]

logger = logging.getLogger(__name__)

_KEY_VERSION = 1  # raise it when the same request should be asked anew
_FIRST_WAIT_S = 0.5
_LEAST_FAILURES_IN_A_ROW = 8


def answer_key(base_url: str, request: dict[str, Any], seed: int | None) -> str:
    """What an answer is kept under: everything that decides it.

    Args:
        seed: The step's, sent or not: replies to two seeds are two draws. None for greedy requests.
    """
    asked = {"version": _KEY_VERSION, "base_url": base_url.rstrip("/"), "request": request, "seed": seed}
    return hashlib.blake2b(msgspec.json.encode(asked, order="sorted"), digest_size=20).hexdigest()


class Chat:
    """A model that can be asked; see the module.

    Attributes:
        reuse: Whether what was answered before is given again.
        counts: Of this object's answers: `asked`, `kept` (answered before), `cut`, `refused`, and what
            whoever asks counts besides.
    """

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.reuse = options.reuse
        self.account = Account(options.cache_path, options.spending)
        self.counts: Counter[str] = Counter()
        self._server = Server(options.base_url, options.key, options.timeout_s)
        self._lock = threading.Condition()
        self._asking: set[str] = set()  # keys of what other threads are asking right now
        self._renewed: set[str] = set()  # keys of what this object asked anew (reuse=False)
        self._given_up: NoAnswer | None = None
        self._stopping = threading.Event()
        self._failures_in_a_row = 0

    def stop(self) -> None:
        """Nothing further is sent or waited for; what is under way is kept when it comes."""
        self._stopping.set()

    def close(self) -> None:
        self._server.close()
        self.account.close()

    def ask(self, fields: dict[str, Any], seed: int | None = None) -> Answer:
        """The answer to a request.

        Args:
            fields: `messages`, and `response_format` where there is one; the options add the rest.
            seed: What is drawn follows from it.

        Raises:
            NoAnswer: With its cause.
        """
        request = {**self.options.request_fields(seed), **fields}
        key = answer_key(self.options.base_url, request, seed if self.options.draws else None)
        with self._alone_with(key):
            answer, was_kept = self._answer(key, request)
        self.count("kept" if was_kept else "asked")
        if answer.ended == "length":
            self.count("cut")
        if answer.refused:
            self.count("refused")
        if answer.ended == "content_filter":
            raise NoAnswer("content filter", "the server took the reply away")
        return answer

    def count(self, name: str) -> None:
        """Adds one to a count."""
        with self._lock:
            self.counts[name] += 1

    def remarks(self) -> list[str]:
        """What should be told of all that was asked so far, in words."""
        counts, spending = self.counts, self.account.spending()
        told = [f"{counts['asked']:,} answers asked for, {counts['kept']:,} were kept from before"]
        of_all = f"of {counts['asked'] + counts['kept']:,} replies"
        if counts["cut"]:
            told.append(f"cut at max_new_tokens={self.options.max_new_tokens}: {counts['cut']:,} {of_all}")
        if counts["refused"]:
            told.append(f"refused by the model: {counts['refused']:,} {of_all}")
        spent = f"{spending.cost.tokens:,} tokens"
        if self.options.prices is not None:
            limit = self.options.spending.money
            spent += f" for {in_money(spending.cost.money)}" + (f" of {in_money(limit)}" if limit is not None else "")
        if spending.unknown:
            spent += f", {spending.unknown:,} tries without a known end counted at their most"
        return [*told, f"{spent} through {self.account.path.name}, all runs together"]

    def _answer(self, key: str, request: dict[str, Any]) -> tuple[Answer, bool]:
        if self.reuse or key in self._renewed:
            kept = self.account.answer(key)
            if kept is not None:
                return kept, True
        try:
            answer = self._tries()(self._try, key, request)
        except NoAnswer as failure:
            self._note_failure(failure)
            raise
        self._failures_in_a_row = 0
        self._renewed.add(key)
        return answer, False

    def _tries(self) -> tenacity.Retrying:
        longest = self.options.longest_wait_s
        grows = tenacity.wait_exponential(multiplier=_FIRST_WAIT_S) + tenacity.wait_random(0, _FIRST_WAIT_S)

        def wait(state: tenacity.RetryCallState) -> float:
            failure = state.outcome.exception() if state.outcome else None
            asked = failure.wait_s if isinstance(failure, NoAnswer) else None
            return max(asked or 0.0, min(grows(state), longest))

        def worth_another(error: BaseException) -> bool:
            return isinstance(error, NoAnswer) and error.may_pass and (error.wait_s or 0) <= longest

        return tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self.options.tries),
            wait=wait,
            retry=tenacity.retry_if_exception(worth_another),
            sleep=tenacity.sleep_using_event(self._stopping),
            reraise=True,
        )

    def _try(self, key: str, request: dict[str, Any]) -> Answer:
        if self._stopping.is_set():
            raise NoAnswer("stopped", "the run was stopped")
        if self._given_up is not None:
            raise NoAnswer(self._given_up.cause, f"not sent, since before: {self._given_up.told}")
        tokens = most_tokens(request, self.options.max_new_tokens)
        reserved = self._cost(*tokens)
        self.account.reserve(reserved)
        try:
            answer = self._server.ask(request)
        except NoAnswer as failure:
            self.account.settle(reserved, None if failure.may_be_charged else Cost(0, 0))
            raise
        except BaseException:
            self.account.settle(reserved, None)
            raise
        read, wrote = answer.input_tokens, answer.output_tokens
        known = read is not None and wrote is not None
        self.account.keep(key, answer, reserved, self._cost(read or 0, wrote or 0) if known else reserved)
        return answer

    def _cost(self, read: int, wrote: int) -> Cost:
        prices = self.options.prices
        return Cost(prices.cost(read, wrote) if prices else 0, read + wrote)

    def _note_failure(self, failure: NoAnswer) -> None:
        """Gives the server up after a cause that will not pass, or when nothing has answered for long."""
        with self._lock:
            if self._given_up is None and failure.cause in FINAL:
                self._given_up = failure
            elif failure.cause in ("server gone", "timed out"):
                self._failures_in_a_row += 1
                most = max(_LEAST_FAILURES_IN_A_ROW, 2 * self.options.concurrency)
                if self._given_up is None and self._failures_in_a_row >= most:
                    self._given_up = NoAnswer(
                        failure.cause, f"{most} requests in a row had no answer, the last: {failure.told}"
                    )

    @contextmanager
    def _alone_with(self, key: str) -> Iterator[None]:
        """Keeps other threads from asking the same until this one has an answer or none."""
        with self._lock:
            self._lock.wait_for(lambda: key not in self._asking)
            self._asking.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._asking.remove(key)
                self._lock.notify_all()
