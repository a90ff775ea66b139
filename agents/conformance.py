"""Checks for authors of agents: does an agent keep the contract of shop_env/evaluation/protocol.py?

    python -m agents check MODULE:CLASS          (or FILE.py:CLASS, a registered name, a checkpoint folder)

Every check runs on small sessions of the demo shop, on hostile pages (empty, broken HTML, many scripts, control
characters, 100 kB), and on steps whose logged actions are random. A *fault* breaks the contract; a *note* breaks
nothing, but authors should know of it.

    WatchedCalls (time limits, copies of observations) ─► replies ─► one Finding per check ─► Report
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from agents.registry import error_with_line, make_agent, parse_spec, protocol_problem
from agents.secret_answers import count_known_answers
from agents.watched_calls import NoReply, TriedToExit, WatchedCalls
from replay_sessions import demo_shop
from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import AgentSpec, call_batched, generate_batch
from shop_env.evaluation.protocol import Agent, BatchAgent, ProbabilityAgent
from shop_env.metrics import checked_distribution
from shop_env.observation import History, Observation, PastStep, observe_session
from shop_env.replies import MalformedReply, parse_reply

Kind = Literal["ok", "note", "fault"]
Replies = Sequence[object]

TIME_LIMIT_S = 60.0
MOST_CHANGED = 0.25  # of the replies may change with the batch: sums in another order can do that
STRANGE_PAGES = {
    "empty page": "",
    "no markup": "just words, no element",
    "broken html": '<div name="a"><a name="b.c>Unclosed <input name=search_input <<>> </span></div',
    "many scripts": '<a name="検索.結果">검색 結果 نتائج поиск 🛒🧵 e\u0301</a><input name="ввод" placeholder="כתוב">',
    "odd characters": '<a name="x\u202e\u200d\ufeff.\U0010ffff">\u2028\u2029\x0b\x0c\x1f\x7f</a>',
    "quotes and braces": '<a name="it&quot;s {&#39;x&#39;: \\">}}{{ %s \\n \\u0000</a>',
    "a long page": '<a name="row.x">' + "word " * 20_000 + "</a>",
}
MOST_GUESSED = 1 / 3  # of random logged actions: chance is one in 40


class Finding(msgspec.Struct, frozen=True):
    """The outcome of one check, in words."""

    kind: Kind
    check: str
    detail: str = ""


class Report(msgspec.Struct, frozen=True):
    """All findings of `check_agent`; `passed` when none is a fault.

    Attributes:
        left_running: A call of the agent did not return, and its thread still runs.
    """

    findings: tuple[Finding, ...]
    left_running: bool = False

    @property
    def passed(self) -> bool:
        return all(finding.kind != "fault" for finding in self.findings)

    def __str__(self) -> str:
        width = max(len(finding.check) for finding in self.findings)
        return "\n".join(f"{f.kind:5}  {f.check:{width}}  {f.detail}".rstrip() for f in self.findings)


def check_agent(
    agent: Agent | AgentSpec | str,
    *,
    sessions: int = 3,
    store: SessionStore | None = None,
    time_limit_s: float = TIME_LIMIT_S,
    **arguments: Any,
) -> Report:
    """Checks an agent against the contract.

    Args:
        agent: An agent, or what `make_agent` takes.
        sessions: How many sessions of the demo shop to check it on.
        store: For `make_agent`.
        time_limit_s: How long one reply may take.
        arguments: For `make_agent`.
    """
    calls = WatchedCalls(time_limit_s)
    spec = parse_spec(agent) if isinstance(agent, str) else agent
    findings: list[Finding] = []
    try:
        if isinstance(spec, AgentSpec):
            spec = msgspec.structs.replace(spec, arguments=spec.arguments | arguments)
            agent = calls.run(lambda: make_agent(spec, store=store), replies=100)
        for finding in _Checks(agent, spec, sessions, calls).findings():
            findings.append(finding)  # noqa: PERF402 - those before a call that does not return stay
    except NoReply as error:
        findings.append(Finding("fault", "replies in time", f"{error}; the limit is {time_limit_s:g} s for a reply"))
    except TriedToExit as error:
        findings.append(Finding("fault", "does not exit the process", str(error)))
    finally:
        calls.close()
    return Report(tuple(findings), left_running=calls.left_running)


class _Checks:
    """The checks of one agent, one after another; a fault that makes later ones meaningless ends them."""

    def __init__(self, agent: Any, spec: object, sessions: int, calls: WatchedCalls) -> None:
        self.agent = agent
        self.spec = spec
        self.calls = calls
        self.observations = [
            observation
            for session in demo_shop.generate_sessions(sessions, seed=20_240_601)
            for observation in observe_session(session)
        ]
        self.seeds = list(range(len(self.observations)))
        self.strange = {name: self._strange_observations(page) for name, page in STRANGE_PAGES.items()}

    def findings(self) -> Iterator[Finding]:
        """One finding per check, as they come."""
        if problem := protocol_problem(self.agent):
            yield Finding("fault", "protocol", f"{problem}: see shop_env/evaluation/protocol.py")
            return
        is_batch = isinstance(self.agent, BatchAgent)
        yield Finding("ok", "protocol", "has reset and act" + (" and act_batch" * is_batch))
        replies = self._act(self.observations, self.seeds)
        if failure := _first_failure(replies):
            yield Finding("fault", "replies to sessions", failure)
            return
        if other := sorted({type(reply).__name__ for reply in replies if not isinstance(reply, str)}):
            yield Finding("fault", "replies are text", f"act returned {', '.join(other)}; it must return str")
            return
        detail = f"on {len(replies)} pages, the first of a session (no history) included"
        yield Finding("ok", "replies are text", detail)
        yield _check_format(replies)
        yield from self._check_repeats(replies)
        yield self._check_reset()
        yield self._check_strange_pages()
        if is_batch:
            yield from self._check_batches(replies)
        if isinstance(self.agent, ProbabilityAgent):
            yield self._check_probabilities()
        predicted, steps = count_known_answers(self.agent, self.spec, self.calls)
        detail = f"{predicted} of {steps} random logged actions: an agent replies to the observation alone"
        yield _judge("no access to the answers", detail if predicted > steps * MOST_GUESSED else "")
        changed = self.calls.changed
        detail = f"{changed} changed an observation that other agents read too"
        yield _judge("does not modify observations", detail if changed else "")

    def _act(self, observations: Sequence[Observation], seeds: Sequence[int]) -> list[object]:
        """What `act` returns or raises at each, after a reset, as in an evaluation."""

        def reply(observation: Observation, seed: int) -> object:
            try:
                self.agent.reset(seed=seed)
                return self.agent.act(observation)
            except Exception as error:
                return error

        return [
            self.calls.show([observation], "act", lambda copies, seed=seed: reply(copies[0], seed))  # type: ignore[misc]
            for observation, seed in zip(observations, seeds, strict=True)
        ]

    def _check_repeats(self, replies: Replies) -> Iterator[Finding]:
        """Each observation three times, then all backwards: the seed decides, and earlier calls change nothing."""
        pairs = zip(self.observations, self.seeds, strict=True)
        again = [self._act([observation] * 3, [seed] * 3) for observation, seed in pairs]
        # An agent that remembers its last call replies the second time as the third.
        if changed := sum(second != third for _, second, third in again):
            detail = f"{changed} of {len(replies)} replies differ when repeated after reset(seed=…): draw from it alone"
            yield Finding("fault", "same seed, same reply", detail)
            return
        yield Finding("ok", "same seed, same reply")
        backwards = self._act(self.observations[::-1], self.seeds[::-1])[::-1]
        firsts = [first for first, _, _ in again]
        rounds = zip(replies, firsts, backwards, strict=True)
        changed = sum(len({*map(repr, same)}) > 1 for same in rounds)  # exceptions are equal by their text
        detail = f"{changed} of {len(replies)} replies differ in another order: only the history tells the past"
        yield _judge("independent of earlier calls", detail if changed else "", "in any order")

    def _check_reset(self) -> Finding:
        problem = ""
        try:
            self.calls.run(lambda: self.agent.reset(seed=None))
        except (NoReply, TriedToExit):
            raise
        except Exception as error:
            problem = error_with_line(error)
        return _judge("reset without a seed", problem)

    def _check_strange_pages(self) -> Finding:
        check, failed = "handles any page", 0
        for name, observations in self.strange.items():
            for reply in self._act(observations, [1, 1]):
                if isinstance(reply, AgentFailed):
                    failed += 1
                elif isinstance(reply, Exception):
                    return Finding("fault", check, f"on {name}: {error_with_line(reply)}")
                elif not isinstance(reply, str):
                    detail = f"on {name}: act returned {type(reply).__name__}; it must return str"
                    return Finding("fault", check, detail)
        detail = f"AgentFailed on {failed} of {2 * len(self.strange)}: those steps would be errors"
        return _judge(check, detail if failed else "", ", ".join(self.strange), kind="note")

    def _strange_observations(self, page: str) -> list[Observation]:
        """The page without history, goal or persona, and the same text as everything at once."""
        action = self.observations[1]["history"][0]["action"]
        past: PastStep = {"page": page, "rationale": page, "action": action}
        return [
            {"page": page, "history": History(), "persona": "", "goal": "", "step": 0},
            {"page": page, "history": History([past]), "persona": page, "goal": page, "step": 1},
        ]

    def _act_batch(self, observations: Sequence[Observation], seeds: Sequence[int]) -> list[str | Exception]:
        return self.calls.show(observations, "act_batch", lambda copies: generate_batch(self.agent, copies, seeds))

    def _check_batches(self, single: Replies) -> Iterator[Finding]:
        check = "one reply per observation"
        batch = self._act_batch(self.observations, self.seeds)
        problem = _first_failure(batch)
        if not problem and (empty := self._act_batch([], [])):
            problem = f"to an empty batch expected [], got {empty!r:.60}"
        yield _judge(check, problem)
        if _first_failure(batch):
            return
        check = "independent of the batch's order"
        if self._act_batch(self.observations[::-1], self.seeds[::-1])[::-1] != batch:
            detail = "the same seeds in another order give other replies: draw from `seeds` alone"
            yield Finding("fault", check, detail)
            return
        yield Finding("ok", check)
        half = self._act_batch(self.observations[::2], self.seeds[::2])
        changed = max(_share_changed(half, batch[::2]), _share_changed(batch, single))
        detail = f"{changed:.0%} of the replies differ alone or in half the batch; rounding may change a few"
        kind: Kind = "note" if changed <= MOST_CHANGED else "fault"
        yield _judge("independent of the batch's size", detail if changed else "", kind=kind)
        strange = [observation for pair in self.strange.values() for observation in pair]
        replies = self._act_batch([*strange, *self.observations], [*range(len(strange)), *self.seeds])
        failure = next((reply for reply in replies[len(strange) :] if isinstance(reply, Exception)), None)
        detail = f"a strange page failed all of its batch ({failure}): return the exception in its place"
        yield _judge("a failure costs one step only", detail if failure else "")

    def _check_probabilities(self) -> Finding:
        check = "probabilities sum to 1"
        distributions = self.calls.show(
            self.observations,
            "probabilities",
            lambda copies: call_batched(self.agent.probabilities, copies, self.seeds, Mapping),
        )
        if distributions is None:
            return Finding("ok", check, "the agent has none")
        try:
            for probabilities in distributions:
                if isinstance(probabilities, Exception):
                    raise probabilities
                checked_distribution(probabilities)
        except Exception as error:
            return Finding("fault", check, error_with_line(error))
        return Finding("ok", check)


def _judge(check: str, problem: str, ok: str = "", *, kind: Kind = "fault") -> Finding:
    return Finding(kind, check, problem) if problem else Finding("ok", check, ok)


def _first_failure(replies: Replies) -> str:
    return next((error_with_line(reply) for reply in replies if isinstance(reply, Exception)), "")


def _share_changed(replies: Replies, others: Replies) -> float:
    return sum(reply != other for reply, other in zip(replies, others, strict=True)) / len(replies)


def _check_format(replies: Replies) -> Finding:
    malformed = [
        parsed for parsed in (parse_reply(str(reply)) for reply in replies) if isinstance(parsed, MalformedReply)
    ]
    problem = ""
    if malformed:
        first = malformed[0]
        problem = f"{len(malformed)} of {len(replies)} earn nothing; the first: {first.problem} ({first.detail})"
    return _judge("replies parse", problem, "each is one JSON object with a rationale and an action", kind="note")
