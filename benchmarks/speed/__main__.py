"""Measures speed, part by part.

  python -m benchmarks.speed env reward --json speed.json
  python -m benchmarks.speed simplify --data ../shared/data
  python -m benchmarks.speed training rollouts
  python -m benchmarks.speed rollouts_gpu training_gpu --json speed_gpu.json

Each part prints its measurements beside those of a peer (the usual implementation), measured in the same run. `--json`
writes them as a list of {"name", "value", "unit", "peer", "peer_value", "ratio", "runs"}. Without parts, all parts
except those for a GPU are measured.
"""

import sys
from importlib import import_module

from benchmarks.speed.measurement import Measurement, Options
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import replace_json
from replay_sessions.foundation.plugins import requires_extra

WITHOUT_TORCH = ("env", "reward", "simplify")


def _run(options: Options) -> int:
    measurements: list[Measurement] = []
    for part in options.parts:
        with requires_extra("reference" if part in WITHOUT_TORCH else "train"):
            module = import_module(f"benchmarks.speed.{part}")  # imported on use, because it needs torch or a peer
        for measurement in module.measure(options):
            print(_format(measurement), flush=True)
            measurements.append(measurement)
            if options.json is not None:  # written each time, so that a stop loses no measurement
                replace_json(options.json, measurements)
    return 0


def _format(measurement: Measurement) -> str:
    line = f"{measurement.name:<44} {measurement.value:>12,.2f} {measurement.unit}"
    if measurement.ratio is None:
        return line
    return f"{line}   {measurement.ratio:,.1f} times {measurement.peer} ({measurement.peer_value:,.2f})"


main = command(Options, _run)

if __name__ == "__main__":
    sys.exit(main())
