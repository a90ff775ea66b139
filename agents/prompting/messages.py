"""An observation as the messages that a model without training on them is sent.

They are those of shop_env.prompts, but for how past steps are shown (options.History): a model copies what its own
replies in the conversation look like, an empty rationale for one. So a step whose rationale is not known is told in
words, in the message that brings the next page, and only whole replies stand as the model's own.

    system (instructions, persona, goal, examples) · page_1 · reply_1 · page_2, "the person did …", page_3 · …

Messages alternate, as chat templates want it, and each step's begin as the step's before did, so that a server can
share what it has read.
"""

from collections.abc import Sequence

from agents.prompting.choice import CHOICE_INSTRUCTIONS, numbered
from agents.prompting.options import History, PromptingOptions
from replay_sessions.schema import Action
from shop_env.observation import Observation, PastStep
from shop_env.prompts import INSTRUCTIONS, Message, render_prompt

__all__ = ["prompt_messages", "told", "without_earliest_page"]

_PAGES_APART = "\n\n"


def prompt_messages(
    observation: Observation, options: PromptingOptions, *, examples: str = "", candidates: Sequence[Action] = ()
) -> list[Message]:
    """The messages of a request.

    Args:
        examples: What stands behind the instructions (examples.py).
        candidates: With the option `choice`, the list to choose from.
    """
    system, *conversation = render_prompt(observation, options.prompt)
    instructions = system["content"]
    if options.choice and options.system_file is None:
        instructions = instructions.replace(INSTRUCTIONS, CHOICE_INSTRUCTIONS, 1)
    if examples:
        instructions += _PAGES_APART + examples
    messages = [
        Message(role="system", content=instructions),
        *_with_history(conversation, observation["history"], options.shown_history),
    ]
    if options.choice:
        messages[-1]["content"] += f"\n\n## What can be done here\n{numbered(candidates)}"
    return messages


def without_earliest_page(observation: Observation) -> Observation | None:
    """The observation without the earliest of its past pages that is still shown; None where there is none."""
    history = observation["history"]
    for place, past in enumerate(history):
        if past["page"]:
            left: PastStep = {"page": "", "rationale": past["rationale"], "action": past["action"]}
            shorter = (*history[:place], left, *history[place + 1 :])
            return {**observation, "history": shorter}
    return None


def told(action: str, rationale: str) -> str:
    """A past step in words.

    >>> told('{"type": "terminate"}', "")
    '(Here the person did: {"type": "terminate"})'
    """
    thought = f', thinking: "{rationale}"' if rationale else ""
    return f"(Here the person did: {action}{thought})"


def _with_history(conversation: Sequence[Message], history: Sequence[PastStep], shown: History) -> list[Message]:
    """The conversation with some of its replies told in words within the message that follows."""
    messages: list[Message] = []
    before: list[str] = []  # pages and what was done on them, since the last reply
    for past, page, reply in zip(history, conversation[::2], conversation[1::2], strict=False):
        before.append(page["content"])
        if shown == "as_trained" or (shown == "whole_replies" and past["rationale"]):
            messages += [Message(role="user", content=_PAGES_APART.join(before)), reply]
            before = []
        else:
            before.append(told(past["action"], past["rationale"]))
    before.append(conversation[-1]["content"])
    return [*messages, Message(role="user", content=_PAGES_APART.join(before))]
