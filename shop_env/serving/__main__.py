"""Gives the env to other people's tools.

  python -m shop_env.serving openenv --store stores/mine --splits train
  python -m shop_env.serving openenv --env live --port 8001
  python -m shop_env.serving tasks --split train --out tasks.jsonl

`openenv` is a server for OpenEnv's clients: TRL, Unsloth, SkyRL, verifiers and
others. A replayed step is one task of one turn. verifiers and Inspect also have
modules of their own, which need no server: docs/serving.md.

Exit codes: 0 done, 2 the call or its input was wrong, 130 stopped by Ctrl-C.
"""

import sys
from collections.abc import Sequence

from replay_sessions.commands.command_line import choose, run_command
from replay_sessions.plugins import Entry, load_entry, summaries

__all__ = ["main"]

COMMANDS = {
    "openenv": Entry("shop_env.serving.openenv.command:run", "Serve the env to OpenEnv's clients."),
    "tasks": Entry("shop_env.serving.task_file:run", "Write a split as single-turn tasks, JSON lines."),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong, 130 stopped."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return run_command(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    name, rest = choose("command", summaries(COMMANDS), words, program="python -m shop_env.serving", text=__doc__)
    done: int = load_entry("command", COMMANDS, name)(rest)
    return done


if __name__ == "__main__":
    sys.exit(main())
