"""Renders the current step as text for a terminal.

Pages and replies are untrusted text, so control characters are removed.
"""

import json
import re

from replay_sessions.elements import find_elements
from replay_sessions.foundation.records import Record
from shop_env.observation import Observation

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SHOWN_ELEMENTS = 40
_SHOWN_CHARACTERS = 2_000


class StepView(Record):
    """The step to render.

    Attributes:
        steps: Number of steps of the session; None if it is unknown.
        answered: The last reply, its reward, and the best reward (None if unknown); None before the first reply.
    """

    session_id: str
    observation: Observation
    steps: int | None
    answered: tuple[str, float, float | None] | None


def render_ansi(view: StepView) -> str:
    """Formats the step as lines: session, persona and goal, past actions, the last reply, the page's elements."""
    observation = view.observation
    people = (("persona", observation["persona"]), ("goal", observation["goal"]))
    lines = [_title(view), *(f"{label}: {text}" for label, text in people if text)]
    lines += [f"did: {past['action']}" for past in observation["history"]]
    if view.answered is not None:
        reply, reward, best_reward = view.answered
        lines += [f"reply: {reply}", f"reward: {reward:g}{'' if best_reward is None else f' of {best_reward:g}'}"]
    lines += ["", *_page_lines(observation["page"])]
    return _CONTROL.sub("", "\n".join(lines)) + "\n"


def _title(view: StepView) -> str:
    step = view.observation["step"]
    if view.steps is None:
        where = f"step {step + 1}"
    else:
        where = f"step {step + 1} of {view.steps}" if step < view.steps else f"ended after {view.steps} steps"
    return f"session {view.session_id}, {where}"


def _page_lines(page: str) -> list[str]:
    """Lists the page's elements, or the beginning of its text if it has none."""
    elements = find_elements(page)
    if not elements:
        return page[:_SHOWN_CHARACTERS].splitlines()
    lines = [
        f"[{element.accepts}] {element.name} {json.dumps(element.text, ensure_ascii=False)}" for element in elements
    ]
    left_out = len(lines) - _SHOWN_ELEMENTS
    return lines[:_SHOWN_ELEMENTS] + ([f"... and {left_out} more elements"] if left_out > 0 else [])
