"""Serves the env to other tools.

  shop-r1 serve openenv --store stores/mine --splits train
  shop-r1 serve tasks --split train --out tasks.jsonl

`openenv` is a server for OpenEnv's clients: TRL, Unsloth, SkyRL, verifiers and
others. A replayed step is one task of one turn. verifiers and Inspect also have
separate modules, which need no server: docs/serving.md.

Exit codes: 0 done, 2 the call or its input was wrong, 130 stopped by Ctrl-C.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from replay_sessions.foundation.command_line import choose, parse_options, program_of
from replay_sessions.foundation.durable_files import replacing
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.schema import Split
from shop_env.serving.openenv.options import ServerOptions
from shop_env.serving.tasks import TaskOptions

PROGRAM = "shop-r1 serve"
COMMANDS = {
    "openenv": "Serve the env to OpenEnv's clients.",
    "tasks": "Write a split as single-turn tasks, JSON lines.",
}


class TaskFile(TaskOptions):
    """Writes the steps of a split as single-turn tasks, one JSON object a line, for tools that read files.

      shop-r1 serve tasks --split train --out tasks.jsonl
      shop-r1 serve tasks --store stores/mine --split train --answers \\
        --out train.jsonl

    Each line is a StepTask (shop_env/serving/tasks.py): `messages` is the prompt.
    With --answers it also has `answer`, the logged action, from which
    shop_env.serving.tasks.score_step computes the reward of a reply.

    Attributes:
        out: The file to write.
        split: The split to write, or all.
        answers: Also write the logged actions. Do not show such a file to a model that is evaluated on it.
        overwrite: Replace an existing file.
    """

    out: str
    split: Split | Literal["all"] = "train"
    answers: bool = False
    overwrite: bool = False


def _run(argv: Sequence[str]) -> int:
    name, arguments = choose("command", COMMANDS, argv, program=PROGRAM, text=__doc__)
    if name == "tasks":
        return _write_tasks(parse_options(TaskFile, arguments, program=f"{PROGRAM} tasks"))
    options = parse_options(ServerOptions, arguments, program=f"{PROGRAM} openenv")
    with requires_extra("openenv"):
        from shop_env.serving.openenv.server import serve  # noqa: PLC0415 - an extra that may be missing
    served: int = serve(options)
    return served


def _write_tasks(options: TaskFile) -> int:
    """Writes all tasks of a split to a file that appears only when it is complete."""
    out = Path(options.out)
    if out.exists() and not options.overwrite:
        raise BadConfig(f"'{out}' is there already: choose another --out, or add --overwrite")
    tasks = options.build_tasks()
    count = tasks.count(options.split)
    if not count:
        raise BadConfig(f"split '{options.split}' has no step to ask about")
    with replacing(out) as partial, partial.open("wb") as file, progress_bar("writing tasks", count) as advance:
        for task in tasks.tasks(options.split):
            line = msgspec.to_builtins(task)
            if options.answers:
                line["answer"] = tasks.answer(options.split, task.index)
            file.write(msgspec.json.encode(line) + b"\n")
            advance(1)
    print(f"{count:,} tasks in {out}")
    return 0


main = program_of(_run)

if __name__ == "__main__":
    sys.exit(main())
