"""Trains a Stable-Baselines3 or sb3-contrib policy on the discrete view of sessions.

  python -m agents.sb3.train --algorithm MaskablePPO --out runs/ppo
  python -m agents.sb3.train --algorithm DQN --store stores/mine --out runs/dqn
  python -m benchmarks.leaderboard --agents "sb3?path=runs/ppo" --out runs/b

Logged pages do not depend on what the policy does, so a step is a bandit's: gamma is 0, and the reward is that of the
preset `binary`, 1 where the whole action is what the shopper did. Only the train split is seen.

OUT holds the policy (agents/sb3/saved.py), metrics.jsonl (one line per rollout: the share of steps answered exactly as
logged, while exploring) and run.json. Exit codes: 0 done, 2 the call or its input was wrong.
"""

import sys
from collections.abc import Sequence

from agents.sb3.config import Sb3Config
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.plugins import load_with_extra

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    config = parse_options(Sb3Config, words, program="python -m agents.sb3.train", text=__doc__)
    code: int = load_with_extra("agents.sb3.training:train", "sb3")(config)
    return code


if __name__ == "__main__":
    sys.exit(main())
