"""Measures the speed of the reward on one core, beside the same reward with the package `rouge_score`.

    python -m benchmarks.speed reward

`reward.replies` parses and scores the texts of replies. Product names are as long as in a real shop (workload.py).
"""

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.speed.measurement import Measurement, Options, compare, median_times
from benchmarks.speed.workload import replies_to, with_long_names
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.schema import Action
from shop_env.reward import RewardConfig, reward_preset, score_reply

_SESSIONS = 2_000


def measure(options: Options) -> Iterator[Measurement]:
    """Yields the replies per second that are parsed and scored, over every step of many sessions."""
    sessions = list(map(with_long_names, generate_sessions(_SESSIONS, seed=0)))
    pairs = [
        (reply, step.action)
        for session, replies in zip(sessions, replies_to(sessions), strict=True)
        for step, reply in zip(session.steps, replies, strict=True)
    ]
    configs = {"ours": reward_preset("shop_r1"), "rouge_score": RewardConfig(similarity="rouge_score")}
    seconds = median_times({label: partial(_score, pairs, config) for label, config in configs.items()}, options.runs)
    yield compare("reward.replies", seconds, "rouge_score", options.runs, unit="replies/s", amount=len(pairs))


def _score(pairs: Sequence[tuple[str, Action]], config: RewardConfig) -> None:
    for reply, logged in pairs:
        score_reply(reply, logged, config)
