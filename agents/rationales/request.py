"""The request for one step's rationale, and how the rationale is parsed from the answer.

The model gets the page, the actions before, and the action there: never a later page or action, nor the persona and the
goal (Shop-R1, section 3: rationales are made "without leveraging any user profile information"). The instructions are
our own; the papers' can be used from a file.
"""

from typing import Any, Literal, NamedTuple

from agents.prompting.answers import Answer
from agents.prompting.formats import rationale_format
from replay_sessions.schema import Session, reply_action
from shop_env.observation import shorten_page
from shop_env.replies import action_json
from shop_env.reply_json import Unreadable, object_inside

INSTRUCTIONS = """\
A person is shopping online. You are shown a page as simplified HTML, in which whatever can be clicked or typed into \
carries a `name`, what the person did before, and what the person then did on this page:

- click: the person clicked the element of that name.
- type_and_submit: the person typed the text into the input of that name and pressed enter.
- terminate: the person closed the window without buying, for nothing there was worth going on for.

Say why, as the person would have thought it at that moment, just before doing it: one short sentence in the first \
person, about the products and the wish behind the act. Do not mention names of elements, HTML or that you are shown \
anything, and do not tell what the page does not show.

Reply with one JSON object and nothing around it: {"rationale": "<the sentence>"}"""

Problem = Literal["refused", "cut", "malformed"]
_REFUSALS = ("i'm sorry, but", "i am sorry, but", "i cannot assist", "i can't assist", "i can't help with", "as an ai")


class NoRationale(NamedTuple):
    """An answer without a rationale: what the model did instead."""

    problem: Problem
    text: str


def rationale_request(
    session: Session, index: int, *, instructions: str = INSTRUCTIONS, page_characters: int, schema: bool
) -> dict[str, Any]:
    """The messages about one step of a session, and the format with guided decoding."""
    actions = [action_json(reply_action(step.action)) for step in session.steps[: index + 1]]
    page = shorten_page(session.steps[index].page, page_characters, len, actions[-1])
    before = "\n".join(actions[:-1]) or "(nothing)"
    content = f"## Before\n{before}\n\n## Page\n{page}\n\n## What the person did\n{actions[-1]}"
    messages = [{"role": "system", "content": instructions}, {"role": "user", "content": content}]
    return {"messages": messages, **({"response_format": rationale_format()} if schema else {})}


def rationale_in(answer: Answer) -> str | NoRationale:
    """The rationale on one line, or what the model did instead of giving one.

    >>> rationale_in(Answer(text='{"rationale": "I need a hat."}', ended="stop"))
    'I need a hat.'
    """
    if answer.refused:
        return NoRationale("refused", answer.text)
    try:
        rationale = object_inside(answer.text)[0].get("rationale")
    except Unreadable:
        rationale = None
    text = " ".join(rationale.split()) if isinstance(rationale, str) else ""
    if (text or answer.text).strip().lower().startswith(_REFUSALS):
        return NoRationale("refused", answer.text)
    if text:
        return text
    return NoRationale("cut" if answer.ended == "length" else "malformed", answer.text)
