"""Writes a checkpoint of LoRA as an ordinary one, its adapter added into the base model's weights.

python -m train.merge runs/mine/shop_r1 --out merged
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import tyro

from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig
from replay_sessions.plugins import load_with_extra


class Merge(msgspec.Struct, frozen=True, kw_only=True):
    """What to merge.

    Attributes:
        checkpoint: A checkpoint's folder.
        out: Where the merged checkpoint is written; a folder that does not exist yet.
    """

    checkpoint: tyro.conf.Positional[Path]
    out: Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(parse_options(Merge, words, program="python -m train.merge", text=__doc__)))


def _run(options: Merge) -> int:
    if options.out.exists():
        raise BadConfig(f"'{options.out}' already exists; give another folder by --out.")
    load_with_extra("train.checkpoints:merge_checkpoint", "train")(options.checkpoint, options.out)
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
