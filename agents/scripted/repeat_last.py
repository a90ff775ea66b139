"""`repeat_last`: whatever the shopper did last, once more. Tells how much of a log is repetition."""

from replay_sessions.schema import Terminate, reply_action
from shop_env.given_words import past_actions
from shop_env.observation import Observation
from shop_env.replies import format_reply

__all__ = ["RepeatLastAgent"]


class RepeatLastAgent:
    """Repeats the last action of the history; terminates where there is none."""

    def reset(self, *, seed: int | None = None) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation) -> str:
        past = past_actions(observation["history"])
        return format_reply("I do that again.", past[-1] if past else reply_action(Terminate()))
