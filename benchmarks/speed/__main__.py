"""Measures speed, part by part.

    python -m benchmarks.speed env reward --json speed.json
    python -m benchmarks.speed simplify --data ../shared/data

Each part prints its figures beside those of the usual way to do the same, measured in the same run; `--json` writes
them as a list of {"name", "value", "unit", "peer", "peer_value", "ratio", "runs"}. Without parts all are measured.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from benchmarks.speed.measurement import Measurement
from replay_sessions.errors import BadConfig, did_you_mean, run_command

# name of a part -> "module:function"; the function takes Options and returns Measurements.
PARTS: dict[str, str] = {
    "env": "benchmarks.speed.env:measure",
    "reward": "benchmarks.speed.reward:measure",
    "simplify": "benchmarks.speed.simplify:measure",
}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What all parts are told.

    Attributes:
        data: The folder of third-party test data; None where there is none.
        runs: How often each thing is measured; None for what the part thinks right.
    """

    data: Path | None = None
    runs: int | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of: {', '.join(PARTS)}; all by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="third-party test data; SHOP_R1_TEST_DATA by default"
    )
    parser.add_argument("--runs", type=int, metavar="N", help="how often each thing is measured")
    given = parser.parse_args(arguments)
    folder = given.data or os.environ.get("SHOP_R1_TEST_DATA")
    options = Options(data=Path(folder) if folder else None, runs=given.runs)
    return run_command(lambda: _measure(given.parts, options, given.json))


def _measure(parts: Sequence[str], options: Options, output: Path | None) -> int:
    for part in parts:
        if part not in PARTS:
            raise BadConfig(f"Unknown part {part!r}. {did_you_mean(part, PARTS)}")
    found: list[Measurement] = []
    for part in parts or PARTS:
        module, function = PARTS[part].split(":")
        measure: Callable[[Options], list[Measurement]] = getattr(importlib.import_module(module), function)
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
