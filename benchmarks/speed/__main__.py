"""Measures speed, part by part.

  python -m benchmarks.speed env reward --json speed.json
  python -m benchmarks.speed simplify --data ../shared/data
  python -m benchmarks.speed training rollouts training_precision
  python -m benchmarks.speed training_gpu --json speed_gpu.json

Each part prints its figures beside those of the usual way to do the same, measured in the same run; `--json` writes
them, one after the other, as a list of {"name", "value", "unit", "peer", "peer_value", "ratio", "runs"}. Without parts
all are measured but training_gpu.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import tyro

from benchmarks.speed.measurement import Measurement
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig, did_you_mean
from replay_sessions.plugins import load_with_extra
from replay_sessions.store.durable_files import replace_file

# name of a part -> "module:function"; the function takes Options and returns Measurements.
PARTS: dict[str, str] = {
    "env": "benchmarks.speed.env:measure",
    "reward": "benchmarks.speed.reward:measure",
    "simplify": "benchmarks.speed.simplify:measure",
    "training": "benchmarks.speed.training:measure",
    "rollouts": "benchmarks.speed.rollouts:measure",
    "training_gpu": "benchmarks.speed.training_gpu:measure",
    "training_precision": "benchmarks.speed.training_precision:measure",
}
# The extra that a part needs, where it is not `reference`.
EXTRAS = {"training": "train", "rollouts": "train", "training_gpu": "train", "training_precision": "train"}
ASKED_FOR = ("training_gpu",)  # measured only where they are named


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What all parts are told.

    Attributes:
        data: The folder of third-party test data; None where there is none.
        runs: How often each thing is measured; None for what the part thinks right.
        shapes: Of models (benchmarks/speed/passes.py); none for those that the part thinks right.
        quick: A tiny shape once, to see that the part runs.
    """

    data: Path | None = None
    runs: int | None = None
    shapes: tuple[str, ...] = ()
    quick: bool = False


class Call(Options, frozen=True, kw_only=True):
    """What to measure.

    Attributes:
        parts: Of env, reward, simplify, training, rollouts, training_precision and training_gpu; all but the last by
            default.
        json: Write the figures to this file.
        data: The folder of third-party test data; None: SHOP_R1_TEST_DATA, if it is set.
        runs: How often each thing is measured; None: as often as the part thinks right.
        shapes: Models to train and to sample with: 31m, 3.7m, smollm2, qwen0.5b, qwen3b; None: each part's own.
        quick: A tiny model once, to see that training, rollouts and training_gpu run.
    """

    parts: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="PART")]] = ()
    json: Path | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(parse_options(Call, words, program="python -m benchmarks.speed", text=__doc__)))


def _run(call: Call) -> int:
    folder = call.data or os.environ.get("SHOP_R1_TEST_DATA")
    options = Options(data=Path(folder) if folder else None, runs=call.runs, shapes=call.shapes, quick=call.quick)
    return _measure(call.parts or [part for part in PARTS if part not in ASKED_FOR], options, call.json)


def _measure(parts: Sequence[str], options: Options, output: Path | None) -> int:
    for part in parts:
        if part not in PARTS:
            raise BadConfig(f"Unknown part {part!r}. {did_you_mean(part, PARTS)}")
    found: list[Measurement] = []
    for part in parts:
        measure: Callable[[Options], list[Measurement]] = load_with_extra(PARTS[part], EXTRAS.get(part, "reference"))
        for measurement in measure(options):
            print(_line(measurement), flush=True)
            found.append(measurement)
            if output is not None:  # a part that is stopped leaves what it has
                replace_file(output, msgspec.json.format(msgspec.json.encode(found)))
    return 0


def _line(measurement: Measurement) -> str:
    line = f"{measurement.name:<44} {measurement.value:>12,.2f} {measurement.unit}"
    if measurement.ratio is None:
        return line
    return f"{line}   {measurement.ratio:,.1f} times {measurement.peer} ({measurement.peer_value:,.2f})"


if __name__ == "__main__":
    sys.exit(main())
