"""Make, fill, look at and check session stores.

  shop-r1 generate --sessions 300 --seed 0 --out stores/demo
  shop-r1 import jsonl logs.jsonl.gz --out stores/mine
  shop-r1 show stores/mine
  shop-r1 check stores/mine
  shop-r1 erase 9f3c27 recordings stores/mine
  shop-r1 export hub stores/mine --out mine_for_the_hub

Each command has its own --help.
"""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from replay_sessions.foundation.command_line import choose, program_of

COMMANDS = {
    "generate": "Make sessions of the embedded demo shop.",
    "import": "Read logs into a store.",
    "show": "Look at a store, a session, a step or a page.",
    "check": "Read every session and report what is wrong.",
    "erase": "Erase what is held of a person.",
    "collect": "Collect what visitors of a shop do.",
    "shop": "Open the demo shop in a browser, and record visits.",
    "export": "Write a store in another form.",
}
_MODULES = {"import": "import_logs"}  # the modules of the other commands have the command's name


def _run(argv: Sequence[str]) -> int:
    name, arguments = choose("command", COMMANDS, argv, program="python -m replay_sessions", text=__doc__)
    # Each command is imported alone: together they would take a second to start.
    run: Callable[[Sequence[str]], int] = import_module(f"replay_sessions.commands.{_MODULES.get(name, name)}").run
    return run(arguments)


main = program_of(_run)

if __name__ == "__main__":
    sys.exit(main())
