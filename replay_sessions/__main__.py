"""Make, fill, look at and check session stores.

  python -m replay_sessions generate --sessions 300 --seed 0 --out stores/demo
  python -m replay_sessions import jsonl logs.jsonl.gz --out stores/mine
  python -m replay_sessions show stores/mine
  python -m replay_sessions check stores/mine
  python -m replay_sessions export hub stores/mine --out mine_for_the_hub

Each command has a --help of its own.
"""

import sys
from collections.abc import Callable, Sequence

from replay_sessions.foundation.command_line import choose, run_command

COMMANDS = {
    "generate": "Make sessions of the embedded demo shop.",
    "import": "Read logs into a store.",
    "show": "Look at a store, a session, a step or a page.",
    "check": "Read every session and report what is wrong.",
    "collect": "Collect what visitors of a shop do.",
    "shop": "Open the demo shop in a browser, and record visits.",
    "export": "Write a store in another form.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 the check found faults, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    name, rest = choose("command", COMMANDS, words, program="python -m replay_sessions", text=__doc__)
    run: Callable[[Sequence[str]], int]
    # Each command is imported alone: together they would take a second to start.
    match name:
        case "generate":
            from replay_sessions.commands.generate import run  # noqa: PLC0415 - start-up time
        case "import":
            from replay_sessions.commands.import_logs import run  # noqa: PLC0415 - start-up time
        case "show":
            from replay_sessions.commands.show import run  # noqa: PLC0415 - start-up time
        case "check":
            from replay_sessions.commands.check import run  # noqa: PLC0415 - start-up time
        case "collect":
            from replay_sessions.commands.collect import run  # noqa: PLC0415 - start-up time
        case "shop":
            from replay_sessions.commands.shop import run  # noqa: PLC0415 - start-up time
        case "export":
            from replay_sessions.commands.export import run  # noqa: PLC0415 - start-up time
    return run(rest)


if __name__ == "__main__":
    sys.exit(main())
