"""The rewards of ShopR1-v0 for all sorts of replies: every interface must pay the same, to the last bit."""

import json
from typing import Any, NamedTuple

import gymnasium

import shop_env  # noqa: F401 - registers ShopR1-v0
from replay_sessions.schema import reply_action
from shop_env.replies import format_reply
from shop_env.serving.tasks import StepScore

__all__ = ["HARD_REPLIES", "KINDS", "REPEATED", "Paid", "paid_by_gym", "paid_by_score", "reply_of_kind"]

HUGE = 200_000  # characters
HARD_REPLIES = {
    "empty": "",
    "blank": " \n\t ",
    "prose": "I would click on the cart.",
    "no_break_space": '\u00a0{"rationale": "", "action": {"type": "terminate"}}\u2028',
    "form_feed": '{"rationale": "", "action": {"type": "terminate"}}\x0c',
    "terminate": '{"rationale": "", "action": {"type": "terminate"}}',
    "not_a_number": '{"rationale": NaN, "action": {"type": "terminate"}}',
    "infinite": '{"rationale": "", "action": {"type": "terminate"}, "score": Infinity}',
    "cut": '{"rationale": "I was about to say',
    "twice": '{"rationale": "", "action": {"type": "terminate"}, "action": {"type": "click", "name": "x"}}',
    "unknown_type": '{"rationale": "", "action": {"type": "hover", "name": "\U0001fad6"}}',
    "fenced": '```json\n{"rationale": "", "action": {"type": "terminate"}}\n```',
    "thinking": '<think>{"a": 1}</think>{"rationale": "", "action": {"type": "terminate"}}',
    "unicode": format_reply("红色水壶 🫖 \u202e\u0000", {"type": "click", "name": "сковорода.é"}),
    "deep": '{"rationale":' + "[" * 5000,
    "huge": "x" * HUGE,
    "huge_text": format_reply("y" * HUGE, {"type": "type_and_submit", "name": "search_input", "text": "z"}),
}
KINDS = ["logged", "similar", "other_name", *HARD_REPLIES]
REPEATED = 3  # the kinds are tried on so many sessions


class Paid(NamedTuple):
    """What an interface says of an answered step."""

    reward: float
    breakdown: dict[str, float | None]
    best_reward: float
    logged_action: dict[str, str]
    problem: str | None


def reply_of_kind(kind: str, logged: dict[str, str]) -> str:
    """A reply to a step at which the person did `logged`."""
    if kind == "logged":
        return format_reply("Because.", logged)
    if kind == "similar":
        return format_reply("", {key: value if key == "type" else value[:-1] for key, value in logged.items()})
    if kind == "other_name":
        return json.dumps({"rationale": "é", "action": {"type": "click", "name": "other"}})  # with escapes
    return HARD_REPLIES[kind]


def paid_by_gym(
    store: str, *, reward: str = "shop_r1", extraction: str = "strict", kinds: list[str] = KINDS
) -> dict[tuple[str, str], Paid]:
    """By the id of a task and the kind of reply, for the first sessions of the test split."""
    env: Any = gymnasium.make(
        "ShopR1-v0", store=store, split="test", order="storage", reward=reward, extraction=extraction
    ).unwrapped
    paid = {}
    for session_id in env.session_ids[:REPEATED]:
        logged = [step.action for step in env.store.session(session_id).steps]
        for kind in kinds:
            _, info = env.reset(options={"session_id": session_id})
            done, index = False, info["step_index"]
            while not done:
                _, pay, done, _, info = env.step(reply_of_kind(kind, reply_action(logged[index])))
                paid[f"{session_id}#{index}", kind] = Paid(
                    pay, info["reward_breakdown"], info["best_reward"], info["logged_action"], info.get("problem")
                )
                index += 1
    return paid


def paid_by_score(score: StepScore) -> Paid:
    return Paid(score.reward, score.reward_breakdown, score.best_reward, score.logged_action, score.problem)
