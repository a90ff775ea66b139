"""Checks for authors of agents: does this class keep the contract of agents/protocol.py?

    python -m agents check MODULE:CLASS          (or FILE.py:CLASS, a registered name, a checkpoint folder)

Every check runs on small sessions of the demo shop, and on pages made to be hostile: empty ones, broken HTML, many
scripts, control characters, 100 kB. A *fault* breaks the contract; a *note* is worth knowing and breaks nothing.
"""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from agents.asking import ask, ask_each
from agents.protocol import Agent, BatchAgent, ProbabilityAgent
from agents.registry import AgentSpec, make_agent
from replay_sessions import demo_shop
from replay_sessions.errors import AgentFailed, ShopR1Error
from shop_env.metrics import checked_distribution
from shop_env.observation import History, Observation, PastStep, observe_session
from shop_env.replies import MalformedReply, parse_reply

__all__ = ["Finding", "Report", "check_agent"]

Kind = Literal["ok", "note", "fault"]
Result = TypeVar("Result")

STRANGE_TEXTS = {
    "empty page": "",
    "no markup": "just words, no element",
    "broken html": '<div name="a"><a name="b.c>Unclosed <input name=search_input <<>> </span></div',
    "many scripts": '<a name="検索.結果">검색 結果 نتائج поиск 🛒🧵 e\u0301</a><input name="ввод" placeholder="כתוב">',
    "odd characters": '<a name="x\u202e\u200d\ufeff.\U0010ffff">\u2028\u2029\x0b\x0c\x1f\x7f</a>',
    "quotes and braces": '<a name="it&quot;s {&#39;x&#39;: \\">}}{{ %s \\n \\u0000</a>',
    "a long page": '<a name="row.x">' + "word " * 20_000 + "</a>",
}


class Finding(msgspec.Struct, frozen=True):
    """The outcome of one check, in words."""

    kind: Kind
    check: str
    detail: str = ""


class Report(msgspec.Struct, frozen=True):
    """What `check_agent` found; `passed` when no finding is a fault."""

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        return all(finding.kind != "fault" for finding in self.findings)

    def __str__(self) -> str:
        width = max(len(finding.check) for finding in self.findings)
        return "\n".join(f"{f.kind:5}  {f.check:{width}}  {f.detail}".rstrip() for f in self.findings)


def check_agent(agent: Agent | AgentSpec | str, *, sessions: int = 3, **arguments: Any) -> Report:
    """Checks an agent against the contract.

    Args:
        agent: An agent, or what `make_agent` takes.
        sessions: On how many sessions of the demo shop.
        arguments: For `make_agent`.
    """
    if isinstance(agent, (str, AgentSpec)):
        agent = make_agent(agent, **arguments)
    return Report(tuple(_findings(agent, sessions)))


def _findings(agent: Agent, sessions: int) -> Iterator[Finding]:
    missing = [name for name in ("reset", "act") if not callable(getattr(agent, name, None))]
    if missing:
        yield Finding("fault", "protocol", f"no method {' or '.join(missing)}: see agents/protocol.py")
        return
    yield Finding("ok", "protocol", "has reset and act" + (" and act_batch" * isinstance(agent, BatchAgent)))
    usual = _demo_observations(sessions)
    seeds = list(range(len(usual)))
    first = _attempt("answers sessions", lambda: _answer_all(agent, usual, seeds))
    if isinstance(first, Finding):
        yield first
        return
    yield _judge_types(first)
    yield _judge_readable(first)
    yield from _check_determinism(agent, usual, seeds, first)
    yield from _check_strange_pages(agent, usual[1])
    if isinstance(agent, BatchAgent):
        yield from _check_batches(agent, usual, seeds, first)
    if isinstance(agent, ProbabilityAgent):
        yield _check_probabilities(agent, usual, seeds)


def _demo_observations(sessions: int) -> list[Observation]:
    found = demo_shop.generate_sessions(sessions, seed=20_240_601)
    return [observation for session in found for observation in observe_session(session)]


def _answer_all(agent: Agent, observations: Sequence[Observation], seeds: Sequence[int]) -> list[str]:
    replies = []
    for observation, seed in zip(observations, seeds, strict=True):
        agent.reset(seed=seed)  # before every step, as in an evaluation
        replies.append(agent.act(observation))
    return replies


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


def _check_determinism(
    agent: Agent, observations: list[Observation], seeds: list[int], first: list[str]
) -> Iterator[Finding]:
    """The same seeds backwards: what was asked before may change nothing."""
    check = "same seed, same replies"
    again = _attempt(check, lambda: _answer_all(agent, observations[::-1], seeds[::-1]))
    if isinstance(again, Finding):
        yield again
    elif changed := sum(one != two for one, two in zip(first, again[::-1], strict=True)):
        detail = f"{changed} of {len(first)} replies differ after reset(seed=…) in another order: forget all else there"
        yield Finding("fault", check, detail)
    else:
        yield Finding("ok", check, "in any order")
    check = "reset without a seed"
    outcome = _attempt(check, lambda: agent.reset(seed=None))
    yield outcome if isinstance(outcome, Finding) else Finding("ok", check)


def _check_strange_pages(agent: Agent, usual: Observation) -> Iterator[Finding]:
    check, refused = "survives any page", 0
    for what, text in STRANGE_TEXTS.items():
        for observation in _strange_observations(usual, text):
            try:
                agent.reset(seed=1)
                reply: object = agent.act(observation)
            except AgentFailed:
                refused += 1
                continue
            except Exception as error:
                yield Finding("fault", check, f"on {what}: {_where(error)}")
                return
            if not isinstance(reply, str):
                yield Finding("fault", check, f"on {what}: act returned {type(reply).__name__}; it must return str")
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
    agent: BatchAgent, observations: list[Observation], seeds: list[int], singly: list[str]
) -> Iterator[Finding]:
    check = "a batch equals single answers"
    together = ask(agent, observations, seeds)
    if failure := next((answer for answer in together if isinstance(answer, Exception)), None):
        yield Finding("fault", check, _where(failure))
        return
    if ask(agent, observations[::-1], seeds[::-1])[::-1] != together:
        yield Finding("fault", check, "the same seeds in another order give other replies: draw from `seeds` alone")
    elif changed := sum(one != two for one, two in zip(together, singly, strict=True)):
        yield Finding(
            "note", check, f"{changed} of {len(singly)} differ: sums in another order may do that, else a fault"
        )
    else:
        yield Finding("ok", check)
    strange = [one for text in STRANGE_TEXTS.values() for one in _strange_observations(observations[1], text)]
    answers = ask(agent, [*strange, *observations], [*seeds[: len(strange)], *seeds])
    if failed := [answer for answer in answers[len(strange) :] if isinstance(answer, Exception)]:
        detail = f"a strange page failed all of its batch ({failed[0]}): return the exception in its place"
        yield Finding("fault", "one failure costs one step", detail)
    if (empty := _attempt("an empty batch", lambda: ask(agent, [], []))) != []:
        yield Finding("fault", "an empty batch", f"expected [], got {empty!r}")


def _check_probabilities(agent: ProbabilityAgent, observations: list[Observation], seeds: list[int]) -> Finding:
    check = "probabilities sum to 1"
    found = ask_each(agent.probabilities, observations, seeds, Mapping)
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


def _attempt(check: str, action: Callable[[], Result]) -> Result | Finding:
    try:
        return action()
    except ShopR1Error as error:
        return Finding("fault", check, f"{type(error).__name__}: {error}")
    except Exception as error:
        return Finding("fault", check, _where(error))


def _where(error: Exception) -> str:
    """The error and the innermost line it came from."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"
