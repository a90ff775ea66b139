"""The papers' tables, trained here and printed beside the published figures.

  python -m benchmarks.paper --table 2
  python -m benchmarks.paper --table 2 --dry-run
  python -m benchmarks.paper --table fig2 --sessions 200 --out runs/paper
  python -m benchmarks.paper --table customer4 --preset smollm2_cpu --seeds 0
  python -m benchmarks.paper --table 4 --store stores/mine -- --grpo.steps 100

Tables: 2, 3, 4, 5 and fig2 of Shop-R1; customer4 to customer8 of Customer-R1.

Each seed trains what the table needs in a process of its own, on a demo shop of
its own where no store is given. Tables of one paper share their runs in OUT:
what is trained and asked is neither trained nor asked again, also after a stop,
and a run of another preset, store or flags is refused. What follows `--` goes to
python -m agents.llm_grpo.train. OUT holds table2.json, .md, .csv and .tex, and
of fig2 a plot.
"""

import sys
from collections.abc import Sequence

from benchmarks.paper.command import run
from replay_sessions.commands.command_line import run_command

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong, 130 stopped by Ctrl-C."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: run(words, text=__doc__))


if __name__ == "__main__":
    sys.exit(main())
