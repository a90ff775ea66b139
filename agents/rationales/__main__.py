"""Writes the rationales that a store lacks, with a language model.

  python -m agents.rationales --store stores/mine --out stores/told \\
    --base-url http://localhost:8000/v1 --model Qwen/Qwen2.5-7B-Instruct
  python -m agents.rationales --store stores/mine --out stores/told \\
    --base-url https://api.openai.com/v1 --model gpt-4.1-mini \\
    --input-price 0.40 --output-price 1.60 --budget 5

For each step without a rationale the model is shown the page, what the person had
done before, and what the person did there; nothing of what came after, which a
past rationale would tell to whoever is to predict it. A rationale of the log stays
as it is. OUT is a new version of the store, in which `rationale_source` names the
model; OUT.rationales.json tells lengths, names of elements that were given away,
duplicates and refusals.

Each answer is kept in OUT.rationales.sqlite as it comes, with what it cost: after
a kill the same command goes on, asks nothing twice and keeps the budget. A key
comes from the environment (--key-env). Exit codes: 0 done, 1 some steps were not
answered and the store is not written (--partial writes it), 2 the call or its
input was wrong.
"""

import sys
from collections.abc import Sequence

from agents.rationales.options import RationaleOptions
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.plugins import load_with_extra

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 not all steps were answered, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    given = parse_options(
        RationaleOptions, words, program="python -m agents.rationales", text=__doc__, can_be_none=True
    )
    code: int = load_with_extra("agents.rationales.command:run", "api")(given)
    return code


if __name__ == "__main__":
    sys.exit(main())
