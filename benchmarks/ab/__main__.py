"""Predicts with simulated shoppers what a change of the demo shop does, beside the true effect.

  shop-r1 ab --agents "oracle?temperature=1" \\
    "ngram?temperature=1&first_action=true" --out runs/ab
  shop-r1 ab --agents \\
    "choice?temperature=1&first_action=true&refits=20" --out runs/ab

Agents learn from logs of the shop as it is (A). They then visit A and each change,
in the place of the same shoppers with the same needs. The true effect is known,
because the demo shop's shoppers are simulated too. A row "no effect" is the
baseline. False alarms are measured on a placebo (other words, the same content)
and on A against A. Intervals are over the simulated shoppers; those of `choice`
with refits include the uncertainty of its fit. Writes ab.json, ab.md and the visits
to OUT; the same call resumes after a stop.
Exit codes: 0 done, 2 the call or its input was wrong.
"""

import sys

from benchmarks.ab import report
from benchmarks.ab.config import LabConfig
from benchmarks.ab.lab import run_lab
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.locks import working_alone_in
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.table import print_results


def _run(config: LabConfig) -> None:
    with working_alone_in(config.out):
        results = run_lab(config)
        record = {"results": results, "provenance": provenance(config)}
        write_results(config.out, "ab", record, report.markdown(results))
    written = f"written: {config.out / 'ab.json'}, ab.md"
    print_results(*report.tables(results), *report.sentences(results), written)


main = command(LabConfig, _run, program="shop-r1 ab")

if __name__ == "__main__":
    sys.exit(main())
