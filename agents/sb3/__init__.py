"""Policies of Stable-Baselines3 and sb3-contrib as agents, on the discrete view (shop_env/wrappers.py).

    env = DiscreteActions(gymnasium.make("ShopR1-v0", split="train", reward="binary"), view="dict")
    model = PPO(CandidatePolicy, env, gamma=0.0).learn(50_000)
    save_policy(model, "runs/ppo")          then: python -m benchmarks.leaderboard --agents "sb3?path=runs/ppo" …

policy.py   a network that scores every candidate alike     train.py   python -m agents.sb3.train
saved.py    a trained policy on disk, without pickle        agent.py   the agent `sb3?path=DIR`
"""

from importlib.util import find_spec

from replay_sessions.errors import MissingExtra

__all__: list[str] = []

for _package in ("stable_baselines3", "sb3_contrib"):
    if find_spec(_package) is None:
        raise MissingExtra(f"agents.sb3 needs the package {_package}: pip install 'shop-r1[sb3]'")
