"""Agents from the command line.

  python -m agents list
  python -m agents check my_package.module:MyAgent
  python -m agents check "my_agent.py:MyAgent?key=value"

Exit codes: 0 done, 1 the check found faults, 2 the call was wrong.
"""

import inspect
import sys
from collections.abc import Sequence
from typing import Annotated

import msgspec
import tyro

from agents.conformance import check_agent
from agents.registry import agent_class, known_agents, make_agent, parse_spec
from replay_sessions.commands.command_line import choose, parse_options, run_command
from replay_sessions.errors import ShopR1Error
from replay_sessions.store import SessionStore

PROGRAM = "python -m agents"
COMMANDS = {
    "list": "List the names that --agents takes.",
    "check": "Check whether an agent keeps the contract of agents/protocol.py.",
}


class List(msgspec.Struct, frozen=True):
    """Lists the registered agents."""


class Check(msgspec.Struct, frozen=True):
    """Checks an agent against the contract of agents/protocol.py.

    Attributes:
        agent: MODULE:CLASS, FILE.py:CLASS, a registered name or a checkpoint folder; arguments as ?key=value.
        store: For agents that are made for a store (majority): `demo` or the path of one.
        sessions: On how many sessions of the demo shop.
    """

    agent: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="AGENT")]]
    store: str | None = None
    sessions: int = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 the check found faults, 2 the call was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    name, rest = choose("command", COMMANDS, words, program=PROGRAM, text=__doc__)
    if name == "check":
        return _check(parse_options(Check, rest, program=f"{PROGRAM} check", text=COMMANDS["check"]))
    parse_options(List, rest, program=f"{PROGRAM} list", text=COMMANDS["list"])
    return _list()


def _list() -> int:
    for name in sorted(known_agents()):
        try:
            build, _ = agent_class(parse_spec(name))
        except ShopR1Error as error:  # another package's agent that does not load must not hide the rest
            print(f"{name:14}  (cannot be loaded: {error})")
            continue
        print(f"{name:14}  {(inspect.getdoc(build) or '').partition(chr(10))[0]}")
    return 0


def _check(command: Check) -> int:
    spec = parse_spec(command.agent)
    store = SessionStore.open(command.store) if command.store else None
    report = check_agent(make_agent(spec, store=store), sessions=command.sessions)
    print(report)
    print(f"{spec.label}: {'passed' if report.passed else 'does not keep the contract'}")
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
