"""The training command of LLM policies (train.py): SFT, then GRPO, then a table of agents (evaluation.py)."""

import sys

from replay_sessions.foundation.command_line import run_command
from replay_sessions.foundation.packages import check_packages

if sys.argv[:1] == ["-m"] and (code := run_command(check_packages)):  # before a foreign `train` runs
    raise SystemExit(code)

import train  # noqa: F401 - before torch: sets how torch's threads wait
