"""Copies the policies of a run of the preset tiny_cpu into the package, in bfloat16.

python -m agents.policies runs/demo
"""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import tyro

from agents.policies import FOLDER, NAMES
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.records import Record
from shop_env.evaluation.waves import CHECKPOINT_MARKER


class Policies(Record):
    """Copies the policies of a run into the package.

    Attributes:
        run: The --out folder of a finished training run.
    """

    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]


def _run(options: Policies) -> None:
    sources = [options.run / name for name in NAMES]
    for source in sources:
        if not (source / CHECKPOINT_MARKER).is_file():
            raise BadConfig(f"'{source}' is no checkpoint: give the --out of a finished run of the preset tiny_cpu")
    with requires_extra("train"):
        import torch  # noqa: PLC0415 - an extra that may be missing
        from safetensors.torch import load_file, save_file  # noqa: PLC0415 - the same
    for source in sources:
        target = FOLDER / source.name
        shutil.copytree(source, target, dirs_exist_ok=True)
        weights = load_file(target / "model.safetensors")
        halved = {name: tensor.to(torch.bfloat16) for name, tensor in weights.items()}
        save_file(halved, target / "model.safetensors", metadata={"format": "pt"})
        print(target)


main = command(Policies, _run)

if __name__ == "__main__":
    sys.exit(main())
