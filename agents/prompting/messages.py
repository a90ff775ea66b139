"""An observation as messages for a model that was not trained on them, and examples of other sessions (few-shot).

They are those of shop_env.prompts, but for the format of past steps (options.History): a model copies what its own
replies in the conversation look like, an empty rationale for one. So a step without a rationale is described in words,
in the message with the next page, and only replies with one appear as the model's own.

    system (instructions, persona, goal, examples) · page_1 · reply_1 · page_2, "the person did …", page_3 · …

Messages alternate, as chat templates require, and each step's begin like those of the step before, so that a server can
share its prefix.

    TrainView ─► drawn sessions ─► each page as a window around its action ─► the reply, or the action in words

Of examples, sessions whose every step has a rationale are drawn first, since they hold complete replies. No persona of
theirs is included: the persona arm of the context is about the shopper who is predicted.
"""

import random
from collections.abc import Iterable, Sequence

from agents.prompting.formats import CHOICE_INSTRUCTIONS, numbered
from agents.prompting.options import History, PromptingOptions
from agents.train_view import TrainView
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Session, Step, reply_action
from shop_env.observation import Observation, PastStep, shorten_page
from shop_env.prompts import INSTRUCTIONS, Message, render_prompt
from shop_env.replies import action_json, reply_json

_BLANK_LINE = "\n\n"
_EXAMPLES_HEAD = "## Examples\nWhat other people did, page by page; of each page only a part is shown."
_MOST_READ = 50  # sessions, in search of some with all rationales: a log may have none


def prompt_messages(
    observation: Observation, options: PromptingOptions, *, examples: str = "", candidates: Sequence[Action] = ()
) -> list[Message]:
    """The messages of a request.

    Args:
        examples: Appended to the instructions (examples_text).
        candidates: With the option `choice`, the list to choose from.
    """
    system, *conversation = render_prompt(observation, options.prompt)
    instructions = system["content"]
    if options.choice and options.system_file is None:
        instructions = instructions.replace(INSTRUCTIONS, CHOICE_INSTRUCTIONS, 1)
    if examples:
        instructions += _BLANK_LINE + examples
    messages = [
        Message(role="system", content=instructions),
        *_with_history(conversation, observation["history"], options.history_format),
    ]
    if options.choice:
        messages[-1]["content"] += f"\n\n## What can be done here\n{numbered(candidates)}"
    return messages


def without_earliest_page(observation: Observation) -> Observation | None:
    """The observation without the earliest past page that it still has; None where there is none."""
    history = observation["history"]
    for index, past in enumerate(history):
        if past["page"]:
            rest: PastStep = {"page": "", "rationale": past["rationale"], "action": past["action"]}
            return {**observation, "history": (*history[:index], rest, *history[index + 1 :])}
    return None


def examples_text(store: TrainView, *, shots: int, seed: int, page_characters: int, history: History) -> str:
    """The examples as text; "" for none.

    Args:
        history: The format of steps (options.History); `described` also where the model chooses by number.

    Raises:
        BadConfig: The train split has fewer sessions.
    """
    if shots == 0:
        return ""
    ids = store.session_ids()
    if shots > len(ids):
        raise BadConfig(f"shots is {shots}, but the train split of store '{store.name}' has {len(ids)} sessions")
    random.Random(seed).shuffle(ids)
    sessions = [store.session(session_id) for session_id in ids[: max(shots, _MOST_READ)]]
    sessions.sort(key=lambda session: not all(step.rationale for step in session.steps))  # stable: in the drawn order
    numbered_sessions = enumerate(sessions[:shots], start=1)
    texts = [_session_text(number, session, page_characters, history) for number, session in numbered_sessions]
    return _BLANK_LINE.join([_EXAMPLES_HEAD, *texts])


def _session_text(number: int, session: Session, page_characters: int, history: History) -> str:
    head = f"### Person {number}" + (f"\nGoal: {session.goal}" if session.goal else "")
    return _BLANK_LINE.join([head, *_step_texts(session.steps, page_characters, history)])


def _step_texts(steps: Iterable[Step], page_characters: int, history: History) -> Iterable[str]:
    for step in steps:
        action, rationale = action_json(reply_action(step.action)), step.rationale or ""
        yield f"#### Page\n{shorten_page(step.page, page_characters, len, action)}"
        is_reply = _is_reply(rationale, history)
        yield f"#### Reply\n{reply_json(rationale, action)}" if is_reply else _describe(action, rationale)


def _is_reply(rationale: str, history: History) -> bool:
    return history == "as_trained" or (history == "whole_replies" and bool(rationale))


def _describe(action: str, rationale: str) -> str:
    """A past step in words.

    >>> _describe('{"type": "terminate"}', "")
    '(Here the person did: {"type": "terminate"})'
    """
    thought = f', thinking: "{rationale}"' if rationale else ""
    return f"(Here the person did: {action}{thought})"


def _with_history(conversation: Sequence[Message], past: Sequence[PastStep], history: History) -> list[Message]:
    """The conversation with some of its replies described within the message that follows."""
    messages: list[Message] = []
    parts: list[str] = []  # pages and actions since the last reply
    for step, page, reply in zip(past, conversation[::2], conversation[1::2], strict=False):
        parts.append(page["content"])
        if _is_reply(step["rationale"], history):
            messages += [Message(role="user", content=_BLANK_LINE.join(parts)), reply]
            parts = []
        else:
            parts.append(_describe(step["action"], step["rationale"]))
    parts.append(conversation[-1]["content"])
    return [*messages, Message(role="user", content=_BLANK_LINE.join(parts))]
