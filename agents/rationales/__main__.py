"""Writes the rationales that a store lacks, with a language model.

  shop-r1 rationales --store stores/mine --out stores/filled \\
    --base-url http://localhost:8000/v1 --model Qwen/Qwen2.5-7B-Instruct

A request shows the model all pages and actions of a session, as in Shop-R1. With
--by step, there is a request for each step without a rationale: it shows the page,
the earlier actions and the action, and no later steps, because a rationale in the
history would reveal them. Splits other than train are only written so, after train:

  shop-r1 rationales --store stores/filled --out stores/all \\
    --base-url http://localhost:8000/v1 --model MODEL --split all --by step

Rationales of the log are not changed. OUT is a new version of the store: its steps'
`rationale_source` and its manifest name the model. A table compares the rationales of
the log and the model: lengths, names of elements in them, repetitions, refusals.

Each reply is saved in OUT.rationales.jsonl at once, so the same command continues
after a kill. The key comes from the environment (--key-env). Exit codes: 0 done, 1
some steps have no reply, or no reply has a rationale, and the store is not written
(--partial writes it), 2 the call or its input was wrong.
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
