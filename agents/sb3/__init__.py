"""Policies of Stable-Baselines3 and sb3-contrib as agents, on the discrete view (shop_env/wrappers.py).

    env = DiscreteActions(gymnasium.make("ShopR1-v0", split="train", reward="binary"), view="dict")
    model = PPO(CandidatePolicy, env, gamma=0.0).learn(50_000)
    save_policy(model, "runs/ppo")          then: shop-r1 rank --agents "sb3?path=runs/ppo" …

policy.py                an actor-critic policy that scores every candidate with the same weights
train.py, training.py    the command python -m agents.sb3.train, with the options of config.py
saved.py                 a trained policy on disk, without pickle, and the agent `sb3?path=DIR`
"""
