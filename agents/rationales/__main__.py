"""Writes the rationales that a store lacks, with a language model.

  python -m agents.rationales --store stores/mine --out stores/filled \\
    --base-url http://localhost:8000/v1 --model Qwen/Qwen2.5-7B-Instruct
  python -m agents.rationales --store stores/mine --out stores/filled \\
    --base-url https://api.openai.com/v1 --model gpt-4.1-mini \\
    --input-price 0.40 --output-price 1.60 --budget 5

For each step without a rationale the model gets the page, the actions before, and
the action there; nothing of later steps, which a rationale in the history would
reveal. A rationale of the log stays as it is. OUT is a new version of the store,
in which `rationale_source` names the model; OUT.rationales.json holds statistics:
lengths, names of elements in rationales, duplicates and refusals.

Each answer is stored in OUT.rationales.sqlite as it comes, with its cost: after a
kill the same command continues, sends no request twice and keeps the budget. A key
comes from the environment (--key-env). Exit codes: 0 done, 1 some steps have no
answer and the store is not written (--partial writes it), 2 the call or its input
was wrong.
"""

import sys
from collections.abc import Sequence

from agents.rationales.options import RationaleOptions
from replay_sessions.foundation.command_line import parse_options, run_command
from replay_sessions.foundation.plugins import requires_extra


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 not all steps were answered, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    options = parse_options(
        RationaleOptions, words, program="python -m agents.rationales", text=__doc__, can_be_none=True
    )
    with requires_extra("api"):
        from agents.rationales.synthesis import synthesise  # noqa: PLC0415 - an extra that may be missing
    return synthesise(options)


if __name__ == "__main__":
    sys.exit(main())
