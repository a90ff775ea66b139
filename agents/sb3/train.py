"""Trains a Stable-Baselines3 or sb3-contrib policy on the discrete view of sessions.

  python -m agents.sb3.train --algorithm MaskablePPO --out runs/ppo
  python -m agents.sb3.train --algorithm DQN --store stores/mine --out runs/dqn
  shop-r1 rank --agents "sb3?path=runs/ppo" --out runs/b

Logged pages do not depend on the policy's actions, so each step is a bandit problem: gamma is 0. The default reward is
the preset `binary`: 1 if the whole action equals the logged action. Only the train split is used.

OUT holds the policy (agents/sb3/saved.py), run.json and metrics.jsonl. A line of metrics.jsonl has a rollout's
mean_reward, with exploration, and best_reward, the mean reward of the logged actions. Exit codes: 0 done, 2 the call or
its input was wrong.
"""

import sys

from agents.sb3.config import Sb3Config
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.plugins import requires_extra


def _train(config: Sb3Config) -> int:
    with requires_extra("sb3"):
        from agents.sb3 import training  # noqa: PLC0415 - an extra that may be missing
    training.train(config)
    return 0


main = command(Sb3Config, _train)

if __name__ == "__main__":
    sys.exit(main())
