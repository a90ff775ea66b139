"""Writes the steps of a split as single-turn tasks, a JSON object a line, for tools that read files.

  python -m shop_env.serving tasks --split train --out tasks.jsonl
  python -m shop_env.serving tasks --store stores/mine --split train --answers \\
    --out train.jsonl

Each line is a StepTask (shop_env/serving/tasks.py): `messages` is the prompt.
With --answers it also has `answer`, what the person did, with which
shop_env.serving.tasks.score_step gives the reward of a reply.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from replay_sessions.foundation.command_line import parse_options
from replay_sessions.foundation.durable_files import replacing
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.schema import Split
from replay_sessions.store import SessionStore
from shop_env.observation import ContextConfig
from shop_env.prompts import PromptConfig
from shop_env.serving.tasks import StepTasks


class TaskFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Writes tasks to a file.

    Attributes:
        out: The file to write.
        store: `demo` or the path of a session store.
        split: Which of its splits, or all.
        answers: Write what the person did too. Keep such a file from whoever is to be measured with it.
        overwrite: Replace a file that is there.
        first_action: Make tasks of the sessions' first actions too.
        context: What of a session is shown.
        prompt: How it is put into words.
    """

    out: str
    store: str = "demo"
    split: Split | Literal["all"] = "train"
    answers: bool = False
    overwrite: bool = False
    first_action: bool = False
    context: ContextConfig = ContextConfig()
    prompt: PromptConfig = PromptConfig()


def run(words: Sequence[str]) -> int:
    """Runs `tasks` with what was given after it."""
    options = parse_options(TaskFile, words, program="python -m shop_env.serving tasks", text=__doc__)
    out = Path(options.out)
    if out.exists() and not options.overwrite:
        raise BadConfig(f"'{out}' is there already: choose another --out, or add --overwrite")
    tasks = StepTasks(
        SessionStore.open(options.store),
        context=options.context,
        prompt=options.prompt,
        first_action=options.first_action,
    )
    count = write_tasks(tasks, options.split, out, answers=options.answers)
    sys.stdout.write(f"{count:,} tasks in {out}\n")
    return 0


def write_tasks(tasks: StepTasks, split: str, out: Path, *, answers: bool) -> int:
    """Writes all tasks of a split, whole or not at all; returns how many."""
    count = tasks.count(split)
    if not count:
        raise BadConfig(f"split '{split}' has no step to ask about")
    with replacing(out) as partial, partial.open("wb") as file, progress_bar("writing tasks", count) as advance:
        for task in tasks.tasks(split):
            line = msgspec.to_builtins(task)
            if answers:
                line["answer"] = tasks.answer(split, task.index)
            file.write(msgspec.json.encode(line) + b"\n")
            advance(1)
    return count
