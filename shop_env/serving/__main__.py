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

from replay_sessions.foundation.command_line import choose, run_command
from replay_sessions.foundation.plugins import requires_extra

COMMANDS = {
    "openenv": "Serve the env to OpenEnv's clients.",
    "tasks": "Write a split as single-turn tasks, JSON lines.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong, 130 stopped."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    name, rest = choose("command", COMMANDS, words, program="python -m shop_env.serving", text=__doc__)
    if name == "tasks":
        from shop_env.serving.task_file import run  # noqa: PLC0415 - start-up time

        return run(rest)
    from shop_env.serving.openenv.options import parse_server_options  # noqa: PLC0415 - start-up time

    options = parse_server_options(rest)
    with requires_extra("openenv"):
        from shop_env.serving.openenv.server import serve  # noqa: PLC0415 - an extra that may be missing
    served: int = serve(options)
    return served


if __name__ == "__main__":
    sys.exit(main())
