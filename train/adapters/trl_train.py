"""Trains with TRL's GRPOTrainer on rows that `shop-r1 train … --for-trl PHASE` wrote.

  accelerate launch -m train.adapters.trl_train trl/opera
  accelerate launch -m train.adapters.trl_train trl/opera use_vllm=true

The same call resumes a stopped run from its last checkpoint.
"""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.records import Record


class TrlTraining(Record):
    """Trains with TRL.

    Attributes:
        folder: The --out of `shop-r1 train … --for-trl PHASE`.
        words: Arguments of trl.GRPOConfig, in place of the folder's.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    words: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="[KEY=VALUE ...]")]] = ()


def _train(options: TrlTraining) -> None:
    with requires_extra("trl"):
        from train.adapters.trl_trainer import train_folder  # noqa: PLC0415 - an extra that may be missing
    train_folder(options.folder, options.words)


main = command(TrlTraining, _train)

if __name__ == "__main__":
    sys.exit(main())
