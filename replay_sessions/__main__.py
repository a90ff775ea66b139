"""Make, fill, look at and check session stores.

  python -m replay_sessions generate --sessions 300 --seed 0 --out stores/demo
  python -m replay_sessions import jsonl logs.jsonl.gz --out stores/mine
  python -m replay_sessions show stores/mine
  python -m replay_sessions check stores/mine
  python -m replay_sessions export hub stores/mine --out mine_for_the_hub

Each command has a --help of its own.
"""

import sys
from collections.abc import Sequence

from replay_sessions.commands.command_line import choose, run_command
from replay_sessions.plugins import Entry, load_entry, summaries

__all__ = ["main"]

COMMANDS = {
    "generate": Entry("replay_sessions.commands.generate:run", "Make sessions of the embedded demo shop."),
    "import": Entry("replay_sessions.commands.import_logs:run", "Read logs into a store."),
    "show": Entry("replay_sessions.commands.show:run", "Look at a store, a session, a step or a page."),
    "check": Entry("replay_sessions.commands.check:run", "Read every session and report what is wrong."),
    "collect": Entry("replay_sessions.commands.collect:run", "Collect what visitors of a shop do."),
    "shop": Entry("replay_sessions.commands.shop:run", "Open the demo shop in a browser, and record visits."),
    "export": Entry("replay_sessions.commands.export:run", "Write a store in another form."),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 the check found faults, 2 the call or its input was wrong."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return run_command(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    name, rest = choose("command", summaries(COMMANDS), words, program="python -m replay_sessions", text=__doc__)
    done: int = load_entry("command", COMMANDS, name)(rest)
    return done


if __name__ == "__main__":
    sys.exit(main())
