"""Writes the rationales that a store lacks, with a language model.

  shop-r1 rationales --store stores/mine --out stores/filled \\
    --base-url http://localhost:8000/v1 --model Qwen/Qwen2.5-7B-Instruct

The model gets a session at once, its pages and actions, as in the papers; with
--by step, for each step without a rationale, the page, the actions before, and the
action there, and nothing of later steps, which a rationale in the history would
reveal. A rationale of the log stays as it is. OUT is a new version of the store,
in which `rationale_source` names the model. A table compares the rationales of the
log and the model: lengths, names of elements in them, repetitions, refusals.

Each reply is kept in OUT.rationales.jsonl as it comes: after a kill the same command
continues. A key comes from the environment (--key-env). Exit codes: 0 done, 1 some
steps have no reply and the store is not written (--partial writes it), 2 the call or
its input was wrong.
"""

import sys

from agents.rationales.request import RationaleOptions
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.plugins import requires_extra


def _run(options: RationaleOptions) -> int:
    with requires_extra("api"):
        from agents.rationales.synthesis import synthesise  # noqa: PLC0415 - an extra that may be missing
    return synthesise(options)


main = command(RationaleOptions, _run, program="shop-r1 rationales", can_be_none=True)

if __name__ == "__main__":
    sys.exit(main())
