"""Measures speed, part by part.

  python -m benchmarks.speed env reward --json speed.json
  python -m benchmarks.speed simplify --data ../shared/data
  python -m benchmarks.speed training rollouts
  python -m benchmarks.speed rollouts_gpu training_gpu --json speed_gpu.json

Each part prints its figures beside those of the usual way to do the same, measured in the same run; `--json` writes
them, one after the other, as a list of {"name", "value", "unit", "peer", "peer_value", "ratio", "runs"}. Without parts
all are measured but those of a GPU.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import tyro

from benchmarks.speed.measurement import Measurement, Options
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import replace_json
from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.plugins import requires_extra

# name of a part -> the extra that it needs
EXTRAS = {
    "env": "reference",
    "reward": "reference",
    "simplify": "reference",
    "training": "train",
    "rollouts": "train",
    "rollouts_gpu": "train",
    "training_gpu": "train",
}
DEFAULT_PARTS = tuple(part for part in EXTRAS if not part.endswith("_gpu"))


class Call(Options):
    """Parts to measure.

    Attributes:
        parts: Of env, reward, simplify, training, rollouts, rollouts_gpu and training_gpu; all but the last two by
            default.
        json: Write the figures to this file.
        data: The folder of third-party test data; None: SHOP_R1_TEST_DATA, if it is set.
        runs: How often each thing is measured; None: as often as the part's own default.
        shapes: Models to train and to sample with: 31m, 3.7m, smollm2, qwen0.5b, qwen3b; None: each part's own.
        quick: A tiny model once, to see that the parts that train and sample run.
    """

    parts: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="PART")]] = ()
    json: Path | None = None


def _run(call: Call) -> int:
    for part in call.parts:
        if part not in EXTRAS:
            raise BadConfig(f"Unknown part {part!r}. {did_you_mean(part, EXTRAS)}")
    measurements: list[Measurement] = []
    for part in call.parts or DEFAULT_PARTS:
        with requires_extra(EXTRAS[part]):
            module = import_module(f"benchmarks.speed.{part}")  # on use: it imports torch, or a peer
        for measurement in module.measure(call):
            print(_format(measurement), flush=True)
            measurements.append(measurement)
            if call.json is not None:  # a part that is stopped leaves its figures so far
                replace_json(call.json, measurements)
    return 0


def _format(measurement: Measurement) -> str:
    line = f"{measurement.name:<44} {measurement.value:>12,.2f} {measurement.unit}"
    if measurement.ratio is None:
        return line
    return f"{line}   {measurement.ratio:,.1f} times {measurement.peer} ({measurement.peer_value:,.2f})"


main = command(Call, _run)

if __name__ == "__main__":
    sys.exit(main())
