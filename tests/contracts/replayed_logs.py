"""A contract of every store: a replay of its log earns the most at every step."""

import gymnasium

from replay_sessions.store import SessionStore
from shop_env.replies import format_reply

__all__ = ["assert_the_log_earns_the_maximum"]


def assert_the_log_earns_the_maximum(store: SessionStore) -> None:
    """Replays all sessions from their first step to the end."""
    env = gymnasium.make("ShopR1-v0", store=str(store.path), split="all", order="storage", first_action=True)
    for session in store.sessions():
        env.reset(options={"session_id": session.session_id})
        for step in session.steps:
            observation, reward, terminated, _, info = env.step(format_reply(step.rationale or "", step.action))
            assert reward == info["best_reward"]
            assert "problem" not in info
        assert terminated
        assert observation["page"] == ""
