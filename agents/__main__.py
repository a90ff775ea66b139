"""Agents from the command line.

    python -m agents list                             the names that --agents takes
    python -m agents check my_package.module:MyAgent  does this class keep the contract?
    python -m agents check "my_agent.py:MyAgent?key=value"

Exit codes: 0 done, 1 the check found faults, 2 the call was wrong.
"""

import inspect
import sys
from typing import Annotated

import msgspec
import tyro

from agents.conformance import check_agent
from agents.registry import agent_class, known_agents, make_agent, parse_spec
from replay_sessions.errors import ShopR1Error, run_command
from replay_sessions.store import SessionStore


class List(msgspec.Struct, frozen=True):
    """Lists the registered agents."""


class Check(msgspec.Struct, frozen=True):
    """Checks an agent against the contract of agents/protocol.py.

    Attributes:
        agent: MODULE:CLASS, FILE.py:CLASS, a registered name or a checkpoint folder; arguments as ?key=value.
        store: For agents that are made for a store (majority): `demo` or the path of one.
        sessions: On how many sessions of the demo shop.
    """

    agent: tyro.conf.Positional[str]
    store: str | None = None
    sessions: int = 3


Command = Annotated[List, tyro.conf.subcommand("list")] | Annotated[Check, tyro.conf.subcommand("check")]


def main(arguments: list[str] | None = None) -> int:
    command: Command = tyro.cli(Command, args=arguments, prog="python -m agents", description=__doc__)
    return run_command(lambda: _list() if isinstance(command, List) else _check(command))


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
