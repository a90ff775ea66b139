"""The LLM policy's training command (train.py): SFT, then GRPO, then a table of agents (run_agents.py)."""

import sys

from replay_sessions.foundation.command_line import run_command
from replay_sessions.foundation.packages import check_packages

if sys.argv[:1] == ["-m"] and (code := run_command(check_packages)):  # before a foreign `train` runs
    raise SystemExit(code)

import train  # noqa: F401 - before torch: it says how torch's threads wait for one another
