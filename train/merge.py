"""Merges the adapter of a LoRA checkpoint into the base model's weights, and writes an ordinary checkpoint.

python -m train.merge runs/mine/shop_r1 --out merged
"""

import sys
from pathlib import Path

import tyro

from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.records import Record


class Merge(Record):
    """Merges a LoRA checkpoint.

    Attributes:
        checkpoint: The folder of the LoRA checkpoint.
        out: The folder to write the merged checkpoint to; it must not exist yet.
    """

    checkpoint: tyro.conf.Positional[Path]
    out: Path


def _merge(options: Merge) -> None:
    if options.out.exists():
        raise BadConfig(f"'{options.out}' already exists; give another folder by --out.")
    with requires_extra("train"):
        from train.checkpoints import merge_checkpoint  # noqa: PLC0415 - an extra that may be missing
    merge_checkpoint(options.checkpoint, options.out)
    print(options.out)


main = command(Merge, _merge)

if __name__ == "__main__":
    sys.exit(main())
