"""Checks for authors of agents: does this class keep the contract of agents/protocol.py?

    python -m agents check MODULE:CLASS          (or FILE.py:CLASS, a registered name, a checkpoint folder)

Every check runs on small sessions of the demo shop, on pages made to be hostile (empty ones, broken HTML, many scripts,
control characters, 100 kB), and on steps whose answers nobody can know. A *fault* breaks the contract; a *note* is
worth knowing and breaks nothing.

    WatchedCalls (in time, nothing changed) ─► what the agent answers ─► one Finding per check ─► Report
"""

import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from agents.asking import ask, ask_each
from agents.protocol import Agent, BatchAgent, ProbabilityAgent
from agents.registry import AgentSpec, make_agent, parse_spec
from agents.secret_answers import known_by_lot
from agents.watched_calls import NoAnswer, TriedToEnd, WatchedCalls
from replay_sessions import demo_shop
from replay_sessions.errors import AgentFailed
from replay_sessions.store import SessionStore
from shop_env.metrics import checked_distribution
from shop_env.observation import History, Observation, PastStep, observe_session
from shop_env.replies import MalformedReply, parse_reply

__all__ = ["Finding", "Report", "check_agent"]

Kind = Literal["ok", "note", "fault"]

TIME_LIMIT_S = 60.0
FEW = 0.25  # of the replies may change with the batch: sums in another order can do that
STRANGE_TEXTS = {
    "empty page": "",
    "no markup": "just words, no element",
    "broken html": '<div name="a"><a name="b.c>Unclosed <input name=search_input <<>> </span></div',
    "many scripts": '<a name="検索.結果">검색 結果 نتائج поиск 🛒🧵 e\u0301</a><input name="ввод" placeholder="כתוב">',
    "odd characters": '<a name="x\u202e\u200d\ufeff.\U0010ffff">\u2028\u2029\x0b\x0c\x1f\x7f</a>',
    "quotes and braces": '<a name="it&quot;s {&#39;x&#39;: \\">}}{{ %s \\n \\u0000</a>',
    "a long page": '<a name="row.x">' + "word " * 20_000 + "</a>",
}
KNOWS = 1 / 3  # of the answers that nobody can know: by chance it is one in 40


class Finding(msgspec.Struct, frozen=True):
    """The outcome of one check, in words."""

    kind: Kind
    check: str
    detail: str = ""


class Report(msgspec.Struct, frozen=True):
    """What `check_agent` found; `passed` when no finding is a fault.

    Attributes:
        left_running: The agent did not come back from a call, in which its thread still is.
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
        sessions: On how many sessions of the demo shop.
        store: For `make_agent`.
        time_limit_s: How long one answer may take.
        arguments: For `make_agent`.
    """
    calls = WatchedCalls(time_limit_s)
    spec = parse_spec(agent) if isinstance(agent, str) else agent
    if isinstance(spec, AgentSpec):
        spec = msgspec.structs.replace(spec, arguments=spec.arguments | arguments)
    findings: list[Finding] = []
    try:
        if isinstance(spec, AgentSpec):
            agent = calls.run(lambda: make_agent(spec, store=store), answers=100)
        for finding in _findings(agent, spec, sessions, calls):
            findings.append(finding)  # noqa: PERF402 - those before a call that does not come back stay
    except NoAnswer as error:
        findings.append(Finding("fault", "answers in time", f"{error}; the limit is {time_limit_s:g} s for an answer"))
    except TriedToEnd as error:
        findings.append(Finding("fault", "never ends the run", str(error)))
    finally:
        calls.close()
    return Report(tuple(findings), left_running=calls.left)


def _findings(agent: Any, spec: object, sessions: int, calls: WatchedCalls) -> Iterator[Finding]:
    missing = [name for name in ("reset", "act") if not callable(getattr(agent, name, None))]
    if missing:
        yield Finding("fault", "protocol", f"no method {' or '.join(missing)}: see agents/protocol.py")
        return
    yield Finding("ok", "protocol", "has reset and act" + (" and act_batch" * isinstance(agent, BatchAgent)))
    usual = _demo_observations(sessions)
    seeds = list(range(len(usual)))
    first = _answers(agent, usual, seeds, calls)
    if isinstance(failure := _failure(first), Exception):
        yield Finding("fault", "answers sessions", _where(failure))
        return
    yield (typed := _judge_types(first))
    if typed.kind == "fault":
        return
    yield _judge_readable(first)
    yield from _check_repeats(agent, usual, seeds, first, calls)
    yield from _check_strange_pages(agent, usual[1], calls)
    if isinstance(agent, BatchAgent):
        yield from _check_batches(agent, usual, seeds, first, calls)
    if isinstance(agent, ProbabilityAgent):
        yield _check_probabilities(agent, usual, seeds, calls)
    yield _check_secrets(agent, spec, calls)
    yield _judge_changes(calls)


def _demo_observations(sessions: int) -> list[Observation]:
    found = demo_shop.generate_sessions(sessions, seed=20_240_601)
    return [observation for session in found for observation in observe_session(session)]


def _answers(
    agent: Agent, observations: Sequence[Observation], seeds: Sequence[int], calls: WatchedCalls
) -> list[object]:
    """What `act` returns or raises at each, after a reset, as in an evaluation."""

    def answer(shown: list[Observation], seed: int) -> object:
        try:
            agent.reset(seed=seed)
            return agent.act(shown[0])
        except Exception as error:
            return error

    return [
        calls.show([observation], "act", lambda shown, seed=seed: answer(shown, seed))  # type: ignore[misc]
        for observation, seed in zip(observations, seeds, strict=True)
    ]


def _failure(answers: Sequence[object]) -> Exception | None:
    return next((answer for answer in answers if isinstance(answer, Exception)), None)


def _judge_types(replies: Sequence[object]) -> Finding:
    wrong = sorted({type(reply).__name__ for reply in replies if not isinstance(reply, str)})
    if wrong:
        return Finding("fault", "replies are text", f"act returned {', '.join(wrong)}; it must return str")
    return Finding("ok", "replies are text", f"on {len(replies)} pages, the first of a session (no history) included")


def _judge_readable(replies: Sequence[object]) -> Finding:
    parsed = [parse_reply(reply) for reply in replies if isinstance(reply, str)]
    bad = [reply for reply in parsed if isinstance(reply, MalformedReply)]
    if not bad:
        return Finding("ok", "replies are readable", "each is one JSON object with a rationale and an action")
    return Finding(
        "note",
        "replies are readable",
        f"{len(bad)} of {len(parsed)} earn nothing; the first: {bad[0].problem} ({bad[0].detail})",
    )


def _check_repeats(
    agent: Agent, observations: list[Observation], seeds: list[int], first: list[object], calls: WatchedCalls
) -> Iterator[Finding]:
    """Each question again and again, then all backwards: a seed decides, and what was asked before changes nothing."""
    check = "same seed, same reply"
    asked = zip(observations, seeds, strict=True)
    again = [_answers(agent, [one] * 3, [seed] * 3, calls) for one, seed in asked]
    # One that remembers what it was asked last answers the second time as the third.
    if changed := sum(two != three for _, two, three in again):
        detail = f"{changed} of {len(first)} replies differ when asked again after reset(seed=…): draw from it alone"
        yield Finding("fault", check, detail)
        return
    yield Finding("ok", check)
    check = "forgets what was asked before"
    backwards = _answers(agent, observations[::-1], seeds[::-1], calls)[::-1]
    firsts = [one for one, _, _ in again]
    if changed := sum(len({*map(repr, replies)}) > 1 for replies in zip(first, firsts, backwards, strict=True)):
        detail = f"{changed} of {len(first)} replies differ in another order: what came before stands in the history"
        yield Finding("fault", check, detail)
    else:
        yield Finding("ok", check, "in any order")
    check = "reset without a seed"
    try:
        calls.run(lambda: agent.reset(seed=None))
    except (NoAnswer, TriedToEnd):
        raise
    except Exception as error:
        yield Finding("fault", check, _where(error))
    else:
        yield Finding("ok", check)


def _check_strange_pages(agent: Agent, usual: Observation, calls: WatchedCalls) -> Iterator[Finding]:
    check, refused = "survives any page", 0
    for what, text in STRANGE_TEXTS.items():
        for answer in _answers(agent, _strange_observations(usual, text), [1, 1], calls):
            if isinstance(answer, AgentFailed):
                refused += 1
            elif isinstance(answer, Exception):
                yield Finding("fault", check, f"on {what}: {_where(answer)}")
                return
            elif not isinstance(answer, str):
                yield Finding("fault", check, f"on {what}: act returned {type(answer).__name__}; it must return str")
                return
    if refused:
        yield Finding(
            "note", check, f"AgentFailed on {refused} of {2 * len(STRANGE_TEXTS)}: those steps would be errors"
        )
    else:
        yield Finding("ok", check, ", ".join(STRANGE_TEXTS))


def _strange_observations(usual: Observation, text: str) -> list[Observation]:
    """The text as a page without history, goal or persona, and as everything at once."""
    past: PastStep = {"page": text, "rationale": text, "action": usual["history"][0]["action"]}
    return [
        {"page": text, "history": History(), "persona": "", "goal": "", "step": 0},
        {"page": text, "history": History([past]), "persona": text, "goal": text, "step": 1},
    ]


def _check_batches(
    agent: BatchAgent, observations: list[Observation], seeds: list[int], singly: list[object], calls: WatchedCalls
) -> Iterator[Finding]:
    def together(some: Sequence[Observation], their_seeds: Sequence[int]) -> list[str | Exception]:
        return calls.show(some, "act_batch", lambda shown: ask(agent, shown, their_seeds))

    check = "a batch has an answer for each"
    whole = together(observations, seeds)
    if failure := _failure(whole):
        yield Finding("fault", check, _where(failure))
        return
    if (empty := together([], [])) != []:
        yield Finding("fault", check, f"to an empty batch expected [], got {empty!r:.60}")
    else:
        yield Finding("ok", check)
    check = "order in a batch changes nothing"
    if together(observations[::-1], seeds[::-1])[::-1] != whole:
        yield Finding("fault", check, "the same seeds in another order give other replies: draw from `seeds` alone")
        return
    yield Finding("ok", check)
    check = "company in a batch changes nothing"
    half = together(observations[::2], seeds[::2])
    changed = sum(one != two for one, two in zip(half, whole[::2], strict=True)) / len(half)
    changed = max(changed, sum(one != two for one, two in zip(whole, singly, strict=True)) / len(whole))
    kind: Kind = "ok" if not changed else "note" if changed <= FEW else "fault"
    told = f"{changed:.0%} of the replies differ alone or in half the batch: sums in another order may change a few"
    yield Finding(kind, check, told if changed else "")
    check = "one failure costs one step"
    strange = [one for text in STRANGE_TEXTS.values() for one in _strange_observations(observations[1], text)]
    answers = together([*strange, *observations], [*range(len(strange)), *seeds])
    if failure := _failure(answers[len(strange) :]):
        detail = f"a strange page failed all of its batch ({failure}): return the exception in its place"
        yield Finding("fault", check, detail)
    else:
        yield Finding("ok", check)


def _check_probabilities(
    agent: ProbabilityAgent, observations: list[Observation], seeds: list[int], calls: WatchedCalls
) -> Finding:
    check = "probabilities sum to 1"
    found = calls.show(
        observations, "probabilities", lambda shown: ask_each(agent.probabilities, shown, seeds, Mapping)
    )
    if found is None:
        return Finding("ok", check, "it gives none")
    for probabilities in found:
        try:
            if isinstance(probabilities, Exception):
                raise probabilities
            checked_distribution(probabilities)
        except Exception as error:
            return Finding("fault", check, _where(error))
    return Finding("ok", check)


def _check_secrets(agent: Agent, spec: object, calls: WatchedCalls) -> Finding:
    check = "does not know the answers"
    known, asked = known_by_lot(agent, spec, calls)
    if known > asked * KNOWS:
        told = f"{known} of {asked} actions that were drawn by lot: an agent answers from the observation alone"
        return Finding("fault", check, told)
    return Finding("ok", check)


def _judge_changes(calls: WatchedCalls) -> Finding:
    check = "leaves observations as they are"
    if calls.changed is None:
        return Finding("ok", check)
    return Finding("fault", check, f"{calls.changed} changed one: others read the same")


def _where(error: Exception) -> str:
    """The error and the innermost line it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
