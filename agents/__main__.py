"""Lists and checks agents, and writes templates of agents, rewards, metrics and importers.

  shop-r1 agents list
  shop-r1 new agent
  shop-r1 new my_function --kind function
  shop-r1 new reward
  shop-r1 agents check my_package.module:MyAgent
  shop-r1 agents check "my_agent.py:MyAgent?key=value"

Exit codes: 0 done, 1 the check found faults, 2 the call was wrong.
"""

import inspect
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec
import tyro

from agents.catalogue import AGENTS, GROUPS
from agents.conformance import TIME_LIMIT_S, check_agent
from agents.registry import agent_class, installed_agents, parse_spec
from agents.templates.writing import PARTS, AgentKind, write_template
from replay_sessions.foundation.command_line import choose, parse_options, program_of
from replay_sessions.foundation.table import Table, columns, print_results
from replay_sessions.store import SessionStore
from shop_env.evaluation.waves import AgentSpec

PROGRAM = "shop-r1 agents"
COMMANDS = {
    "list": "List the names that --agents takes, and what each needs.",
    "new": "Write an agent, reward, metric or importer to begin with, and its test.",
    "check": "Check whether an agent keeps the contract of shop_env/evaluation/protocol.py.",
}


class List(msgspec.Struct, frozen=True):
    """Lists the registered agents, and what each of them needs."""


class New(msgspec.Struct, frozen=True):
    """Writes NAME.py, which runs, and test_NAME.py, which passes; existing files are not overwritten.

    Attributes:
        part: The part to write: `agent`, `reward`, `metric` or `importer`; any other word is the name of a new agent.
        name: The name of the module; None means my_PART.
        kind: The kind of agent: `class` with reset and act, `function` that takes an observation and returns a reply,
            or `policy` with a predict that chooses among the page's candidates.
        out: The folder to write to.
    """

    part: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="PART")]]
    name: str | None = None
    kind: AgentKind = "class"
    out: Path = Path()


class Check(msgspec.Struct, frozen=True):
    """Checks an agent against the contract of shop_env/evaluation/protocol.py.

    Attributes:
        agent: MODULE:CLASS, FILE.py:CLASS, FILE.py:FUNCTION, a registered name or a checkpoint folder; arguments as
            ?key=value.
        store: The store for an agent that learns from one, such as majority: `demo` or a path.
        sessions: The number of sessions of the demo shop to check it on.
        reward: The preset, or your FILE.py:FUNCTION, whose ties are counted: steps at which another element of the page
            earns as much as the logged one.
        time_limit_s: The longest time that a reply may take, in seconds.
    """

    agent: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="AGENT")]]
    store: str | None = None
    sessions: int = 3
    reward: str = "shop_r1"
    time_limit_s: float = TIME_LIMIT_S


def _run(argv: Sequence[str]) -> int:
    name, arguments = choose("command", COMMANDS, argv, program=PROGRAM, text=__doc__)
    program = f"{PROGRAM} {name}"
    match name:
        case "list":
            parse_options(List, arguments, program=program)
            return _list()
        case "new":
            return _new(parse_options(New, arguments, program="shop-r1 new"))
        case _:
            return _check(parse_options(Check, arguments, program=program))


def _list() -> int:
    rows = [_describe(name) for name in (*AGENTS, *sorted(installed_agents()))]
    rows += [(group, f"stands for {', '.join(names)}", "") for group, names in GROUPS.items()]
    print_results(
        Table(columns=columns("agent", "what it is", "what it lacks here"), rows=[list(row) for row in rows]),
        "and MODULE:CLASS, FILE.py:CLASS, FILE.py:FUNCTION, the folder of a checkpoint",
    )
    return 0


def _describe(name: str) -> tuple[str, str, str]:
    """Returns an agent's name, its summary, and what it lacks to run here.

    Agents of this project that need an extra are described without loading them.
    """
    entry = AGENTS.get(name)
    if entry is not None and entry.extra:
        is_missing = find_spec(entry.package) is None
        return name, entry.summary, f"needs {entry.package}; pip install 'shop-r1[{entry.extra}]'" if is_missing else ""
    try:
        build = agent_class(AgentSpec(target=name, label=name))[0]
    except Exception as error:  # an agent of another package; one that fails must not hide the others
        return name, "", f"cannot be loaded: {error}"
    return name, (inspect.getdoc(build) or "").partition("\n")[0], ""


def _new(command: New) -> int:
    part = command.part if command.part in PARTS else "agent"
    name = command.name or (command.part if part != command.part else f"my_{part}")
    target, files = write_template(name, command.kind if part == "agent" else part, command.out)
    for file in files:
        print(f"written: {file}")
    print(
        f"try: shop-r1 agents check {target}" if part == "agent" else f"use: {target} (the head of the file says where)"
    )
    print(f"     python -m pytest {files[1]} (pip install pytest)")
    if part == "agent":
        print(f"     shop-r1 rank --agents {target},random --out boards/{name}")
    return 0


def _check(command: Check) -> int:
    spec = parse_spec(command.agent)
    store = SessionStore.open(command.store) if command.store else None
    report = check_agent(
        spec, store=store, sessions=command.sessions, reward=command.reward, time_limit_s=command.time_limit_s
    )
    print(report)
    print(f"{spec.label}: {'passed' if report.passed else 'failed'}")
    return 0 if report.passed else 1


main = program_of(_run)

if __name__ == "__main__":
    sys.exit(main())
