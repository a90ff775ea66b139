"""Writes the rationales that a store lacks, with a language model.

  shop-r1 rationales --store stores/mine --out stores/filled \\
    --base-url http://localhost:8000/v1 --model Qwen/Qwen2.5-7B-Instruct

  shop-r1 rationales --store stores/mine --out stores/filled \\
    --base-url https://api.openai.com/v1 --model gpt-4.1-mini \\
    --input-price 0.40 --output-price 1.60 --budget 5

  shop-r1 rationales … --temperature 0.8 --reconstruct 4

For each step without a rationale the model gets the page, the actions before, and
the action there; nothing of later steps, which a rationale in the history would
reveal. A rationale of the log stays as it is. OUT is a new version of the store,
in which `rationale_source` names the model; OUT.rationales.json holds statistics:
lengths, names of elements in rationales, duplicates and refusals.

--reconstruct N draws up to N rationales for a step and takes the first from which
the action can be reconstructed by a model that sees page and rationale alone
(--reconstructed-by, or the same). Steps without one stay without, and are counted.

Each answer is stored in OUT.rationales.sqlite as it comes, with its cost: after a
kill the same command continues, sends no request twice and keeps the budget. A key
comes from the environment (--key-env). Exit codes: 0 done, 1 some steps have no
answer and the store is not written (--partial writes it), 2 the call or its input
was wrong.
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
