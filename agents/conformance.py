"""Checks whether an agent keeps the contract of shop_env/evaluation/protocol.py, for authors of agents.

    shop-r1 agents check MODULE:CLASS          (or FILE.py:CLASS, a registered name, a checkpoint folder)

Every check runs on small sessions of the demo shop and on hostile pages (empty, broken HTML, many scripts, control
characters, 100 kB). A *fault* breaks the contract; a *note* does not, but authors should know of it. The agent runs in
this process, so that a fault is reported with its file and line.
"""

import copy
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Literal, TypeVar

import msgspec

from agents.registry import make_agent, parse_spec, protocol_problem
from replay_sessions import demo_shop
from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.foundation.plugins import error_with_line
from replay_sessions.store import SessionStore
from shop_env.evaluation.answering import Seeds, generate_batch, probabilities_batch
from shop_env.evaluation.protocol import Agent, BatchAgent, ProbabilityAgent
from shop_env.evaluation.scored_steps import EvaluationConfig
from shop_env.evaluation.waves import AgentSpec
from shop_env.observation import ContextConfig, History, Observation, PastStep, observe_session
from shop_env.replies import MalformedReply, parse_reply
from shop_env.reward import RewardConfig, reward_preset
from shop_env.reward.ties import count_ties, sample_ties

Kind = Literal["ok", "note", "fault"]
Replies = Sequence[str | BaseException]
Result = TypeVar("Result")

TIME_LIMIT_S = 60.0
MOST_CHANGED = 0.25  # share of replies that may change with the batch, because sums in another order round differently
STRANGE_PAGES = {
    "empty page": "",
    "no markup": "just words, no element",
    "broken html": '<div name="a"><a name="b.c>Unclosed <input name=search_input <<>> </span></div',
    "many scripts": '<a name="検索.結果">검색 結果 نتائج поиск 🛒🧵 e\u0301</a><input name="ввод" placeholder="כתוב">',
    "odd characters": '<a name="x\u202e\u200d\ufeff.\U0010ffff">\u2028\u2029\x0b\x0c\x1f\x7f</a>',
    "quotes and braces": '<a name="it&quot;s {&#39;x&#39;: \\">}}{{ %s \\n \\u0000</a>',
    "a long page": '<a name="row.x">' + "word " * 20_000 + "</a>",
}


class Finding(msgspec.Struct, frozen=True):
    """The outcome of one check."""

    kind: Kind
    check: str
    detail: str = ""


class Report(msgspec.Struct, frozen=True):
    """The findings of `check_agent`; it is `passed` if none of them is a fault."""

    findings: tuple[Finding, ...]

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
    reward: str | RewardConfig = "shop_r1",
    time_limit_s: float = TIME_LIMIT_S,
    **arguments: Any,
) -> Report:
    """Checks an agent against the contract and returns the findings.

    Args:
        agent: An agent, or a spec or text that `make_agent` takes.
        sessions: The number of sessions of the demo shop to check it on.
        store: The store that `make_agent` gets.
        reward: The reward whose ties are counted, on `store` or on the sessions of the demo shop.
        time_limit_s: The longest time that a reply may take, in seconds.
        arguments: Further arguments of `make_agent`.
    """
    spec = parse_spec(agent) if isinstance(agent, str) else agent
    if isinstance(spec, AgentSpec):
        agent = make_agent(spec, store=store, **arguments)
    checks = _Checks(agent, sessions)
    checks.run()
    checks.judge_ties(store, reward_preset(reward))
    slowest_s = checks.slowest_s
    slow = slowest_s > time_limit_s and f"{slowest_s:.3g} s for a reply; the limit is {time_limit_s:g} s"
    checks.judge("replies in time", slow)
    return Report(tuple(checks.findings))


class _Checks:
    """The checks of one agent, in sequence; a fault that makes later checks meaningless ends them.

    Attributes:
        changed: The name of the first method that changed an observation; "" if no method did.
        slowest_s: The longest time for a reply in seconds, as the mean over the replies of its call.
    """

    def __init__(self, agent: Any, sessions: int) -> None:
        self.agent = agent
        self.changed, self.slowest_s = "", 0.0
        self.findings: list[Finding] = []
        self.sessions = [*demo_shop.generate_sessions(sessions, seed=20_240_601)]
        self.observations = [
            observation
            for session in self.sessions
            for observation in observe_session(session, ContextConfig(goal="shown"))  # with all that it could remember
        ]
        self.seeds = list(range(len(self.observations)))

    def judge_ties(self, store: SessionStore | None, reward: RewardConfig) -> None:
        """Records how often the reward pays another element of the page like the logged one."""
        if store is not None:
            keys = EvaluationConfig(store=str(store.path), split="all", inferred=True).keys(store)
            ties = sample_ties(store, keys, reward)
        else:
            ties = count_ties(((s, index) for s in self.sessions for index in range(len(s.steps))), reward)
        if ties is not None:
            self.judge("the reward names the element", ties.are_many and ties.text, ties.text, kind="note")

    def judge(self, check: str, problem: object, ok: str = "", *, kind: Kind = "fault") -> bool:
        """Records the outcome of a check and returns whether it has a problem."""
        self.findings.append(Finding(kind, check, str(problem)) if problem else Finding("ok", check, ok))
        return bool(problem)

    def run(self) -> None:
        """Runs the checks."""
        problem, is_batch = protocol_problem(self.agent), isinstance(self.agent, BatchAgent)
        methods = "has reset and act" + (" and act_batch" * is_batch)
        if self.judge("protocol", problem and f"{problem}: see shop_env/evaluation/protocol.py", methods):
            return
        replies = self._act(self.observations, self.seeds)
        pages = f"on {len(replies)} pages, the first of a session (no history) included"
        if self.judge("replies to sessions", _first_failure(replies), pages):
            return
        self._check_format(replies)
        self._check_repeats(replies)
        self._check_strange_pages()
        if is_batch:
            self._check_batches(replies)
        if isinstance(self.agent, ProbabilityAgent):
            self._check_probabilities()
        changed = self.changed and f"{self.changed} changed an observation that other agents read too"
        self.judge("does not modify observations", changed)

    def _show(
        self, observations: Sequence[Observation], call: str, task: Callable[[list[Observation]], Result]
    ) -> Result:
        """Runs the task on copies of the observations, and records its time and whether it changes a copy."""
        copies, began = copy.deepcopy(list(observations)), time.monotonic()
        result = task(copies)
        self.slowest_s = max(self.slowest_s, (time.monotonic() - began) / len(copies))
        if copies != list(observations):
            self.changed = self.changed or call
        return result

    def _act(self, observations: Sequence[Observation], seeds: Seeds) -> list[str | BaseException]:
        """Returns the reply of `act` to each observation, after a reset, as in an evaluation."""
        single: Any = SimpleNamespace(reset=self.agent.reset, act=self.agent.act)  # without its act_batch
        return [
            self._show([observation], "act", lambda copies, seed=seed: generate_batch(single, copies, [seed]))[0]  # type: ignore[misc]
            for observation, seed in zip(observations, seeds, strict=True)
        ]

    def _act_batch(self, observations: Sequence[Observation], seeds: Seeds) -> list[str | BaseException]:
        return self._show(observations, "act_batch", lambda copies: generate_batch(self.agent, copies, seeds))

    def _check_format(self, replies: Replies) -> None:
        parsed = [parse_reply(str(reply), "strict_input") for reply in replies]
        malformed = [f"{reply.problem} ({reply.detail})" for reply in parsed if isinstance(reply, MalformedReply)]
        problem = malformed and f"{len(malformed)} of {len(replies)} earn nothing; the first: {malformed[0]}"
        self.judge("replies parse", problem, "each is one JSON object with a rationale and an action", kind="note")

    def _check_repeats(self, replies: Replies) -> None:
        """Checks that replies depend on the seed and not on earlier calls.

        Each observation is answered three times, then all of them are answered in reverse order.
        """
        pairs = zip(self.observations, self.seeds, strict=True)
        repeats = [self._act([observation] * 3, [seed] * 3) for observation, seed in pairs]
        # The second and third reply are equal even if the agent remembers its last call.
        changed = sum(second != third for _, second, third in repeats)
        detail = f"{changed} of {len(replies)} replies differ when repeated after reset(seed=…): draw from it alone"
        if self.judge("same seed, same reply", changed and detail):
            return
        backwards = self._act(self.observations[::-1], self.seeds[::-1])[::-1]
        rounds = zip(replies, [first for first, _, _ in repeats], backwards, strict=True)
        changed = sum(len({*map(repr, same)}) > 1 for same in rounds)  # equal exceptions have equal reprs
        detail = f"{changed} of {len(replies)} replies differ in another order: only the history tells the past"
        self.judge("independent of earlier calls", changed and detail, "in any order")

    def _check_strange_pages(self) -> None:
        pages = [(name, observation) for name, page in STRANGE_PAGES.items() for observation in self._strange(page)]
        replies = self._act([observation for _, observation in pages], [1] * len(pages))
        failed = [
            (name, reply) for (name, _), reply in zip(pages, replies, strict=True) if isinstance(reply, BaseException)
        ]
        for name, failure in failed:
            if not isinstance(failure, AgentFailed):
                self.judge("handles any page", f"on {name}: {error_with_line(failure)}")
                return
        detail = f"AgentFailed on {len(failed)} of {len(pages)}: those steps would be errors"
        self.judge("handles any page", failed and detail, ", ".join(STRANGE_PAGES), kind="note")

    def _strange(self, page: str) -> list[Observation]:
        """Returns an observation of the page alone, and one with the page's text as history, goal and persona too."""
        action = self.observations[1]["history"][0]["action"]
        past: PastStep = {"page": page, "rationale": page, "action": action}
        return [
            {"page": page, "history": History(), "persona": "", "goal": "", "step": 0},
            {"page": page, "history": History([past]), "persona": page, "goal": page, "step": 1},
        ]

    def _check_batches(self, single: Replies) -> None:
        batch = self._act_batch(self.observations, self.seeds)
        if self.judge("one reply per observation", _first_failure(batch)):
            return
        backwards = self._act_batch(self.observations[::-1], self.seeds[::-1])[::-1]
        replies = zip(batch, backwards, single, strict=True)
        changed = sum(len({*map(str, same)}) > 1 for same in replies) / len(batch)
        kind: Kind = "note" if changed <= MOST_CHANGED else "fault"
        detail = f"{changed:.0%} of the replies differ alone or in another order; rounding may change a few"
        self.judge("independent of the batch", changed and detail, kind=kind)
        strange = [observation for page in STRANGE_PAGES.values() for observation in self._strange(page)]
        mixed = self._act_batch([*strange, *self.observations], [*range(len(strange)), *self.seeds])
        failed = _first_failure(mixed[len(strange) :])
        detail = f"a strange page failed all of its batch ({failed}): return the exception in its place"
        self.judge("a failure costs one step only", failed and detail)

    def _check_probabilities(self) -> None:
        weighed = self._show(
            self.observations,
            "probabilities",
            lambda copies: probabilities_batch(self.agent, copies, self.seeds),
        )
        results = [result for result in weighed if result is not None]
        self.judge("probabilities sum to 1", _first_failure(results), "" if results else "the agent has none")


def _first_failure(results: Sequence[object]) -> str:
    return next((error_with_line(result) for result in results if isinstance(result, BaseException)), "")
