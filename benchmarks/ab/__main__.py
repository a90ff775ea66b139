"""What would this change do? Simulated shoppers answer, and are held against the true effect.

  python -m benchmarks.ab --agents "oracle?temperature=1" \\
    "ngram?temperature=1&skip_first_action=false" --out runs/ab
  python -m benchmarks.ab --agents nearest --variants checkout_page placebo \\
    --visits 200 --out runs/ab

Agents learn from logs of the shop as it is (A) and walk through it and through
each change, in the place of the same shoppers with the same needs. The demo
shop's shoppers are known, so the true effect is too. Beside the agents stand two
floors: a regression of purchases on A's logs, and no effect. False alarms are
told on a placebo (other words, the same content) and on A against A. Leaves
ab.json, ab.md, effects.png and effects.svg in OUT; visits are kept there, and the
same call goes on after a stop. Needs the extras floors and report.
Exit codes: 0 done, 2 the call or its input was wrong.
"""

import sys
from collections.abc import Sequence

import msgspec

from agents.results import results_console
from benchmarks.ab.config import LabConfig
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.plugins import load_with_extra
from replay_sessions.provenance import provenance
from replay_sessions.store.durable_files import replace_file
from replay_sessions.store.locks import working_alone_in

__all__ = ["main"]

PROGRAM = "python -m benchmarks.ab"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(parse_options(LabConfig, words, program=PROGRAM, text=__doc__)))


def _run(config: LabConfig) -> int:
    run_lab = load_with_extra("benchmarks.ab.lab:run_lab", "floors")
    draw, markdown, sentences = (
        load_with_extra(f"benchmarks.ab.report:{name}", "report") for name in ("draw", "markdown", "sentences")
    )
    with working_alone_in(config.out):
        results = run_lab(config)
        record = {"results": results, "provenance": provenance(msgspec.to_builtins(config, enc_hook=str))}
        replace_file(config.out / "ab.json", msgspec.json.format(msgspec.json.encode(record)) + b"\n")
        replace_file(config.out / "ab.md", markdown(results))
        for kind in ("png", "svg"):
            draw(results, config.out / f"effects.{kind}")
    console = results_console()
    console.print(markdown(results).split("\n- ")[0], markup=False, highlight=False)
    for sentence in sentences(results):
        console.print(sentence, markup=False, highlight=False)
    console.print(f"written: {config.out / 'ab.json'}, ab.md, effects.png, effects.svg", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
