"""Measures speed, part by part.

  python -m benchmarks.speed env reward --json speed.json
  python -m benchmarks.speed simplify --data ../shared/data
  python -m benchmarks.speed training training_precision

Each part prints its figures beside those of the usual way to do the same, measured in the same run; `--json` writes
them as a list of {"name", "value", "unit", "peer", "peer_value", "ratio", "runs"}. Without parts all are measured.
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

# name of a part -> "module:function"; the function takes Options and returns Measurements.
PARTS: dict[str, str] = {
    "env": "benchmarks.speed.env:measure",
    "reward": "benchmarks.speed.reward:measure",
    "simplify": "benchmarks.speed.simplify:measure",
    "training": "benchmarks.speed.training:measure",
    "training_precision": "benchmarks.speed.training_precision:measure",
}
# The extra that a part needs, where it is not `reference`.
EXTRAS = {"training": "train", "training_precision": "train"}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What all parts are told.

    Attributes:
        data: The folder of third-party test data; None where there is none.
        runs: How often each thing is measured; None for what the part thinks right.
    """

    data: Path | None = None
    runs: int | None = None


class Call(Options, frozen=True, kw_only=True):
    """What to measure.

    Attributes:
        parts: Of env, reward, simplify, training and training_precision; all by default.
        json: Write the figures to this file.
        data: The folder of third-party test data; None: SHOP_R1_TEST_DATA, if it is set.
        runs: How often each thing is measured; None: as often as the part thinks right.
    """

    parts: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="PART")]] = ()
    json: Path | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(parse_options(Call, words, program="python -m benchmarks.speed", text=__doc__)))


def _run(call: Call) -> int:
    folder = call.data or os.environ.get("SHOP_R1_TEST_DATA")
    return _measure(call.parts, Options(data=Path(folder) if folder else None, runs=call.runs), call.json)


def _measure(parts: Sequence[str], options: Options, output: Path | None) -> int:
    for part in parts:
        if part not in PARTS:
            raise BadConfig(f"Unknown part {part!r}. {did_you_mean(part, PARTS)}")
    found: list[Measurement] = []
    for part in parts or PARTS:
        measure: Callable[[Options], list[Measurement]] = load_with_extra(PARTS[part], EXTRAS.get(part, "reference"))
        for measurement in measure(options):
            print(_line(measurement), flush=True)
            found.append(measurement)
    if output is not None:
        part_written = output.with_suffix(output.suffix + ".part")
        part_written.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
        part_written.replace(output)
    return 0


def _line(measurement: Measurement) -> str:
    line = f"{measurement.name:<44} {measurement.value:>12,.2f} {measurement.unit}"
    if measurement.ratio is None:
        return line
    return f"{line}   {measurement.ratio:,.1f} times {measurement.peer} ({measurement.peer_value:,.2f})"


if __name__ == "__main__":
    sys.exit(main())
