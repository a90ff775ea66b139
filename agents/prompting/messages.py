"""Builds the messages of a request, with examples from the train split (few-shot).

The messages are those of shop_env.prompts, which every model of this project reads.

    TrainView ─► drawn sessions ─► each page as a window around its action, and the reply

Sessions with a rationale at every step are the first choice for examples. Examples do not include personas, because
the persona arm of the context is about the shopper who is predicted.
"""

import random

from agents.prompting.options import PromptingOptions
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import written_action
from shop_env.observation import ContextConfig, Observation, observe_session
from shop_env.page_budget import shorten_page
from shop_env.prompts import Message, merge_system, past_reply, render_prompt
from shop_env.replies import action_json
from shop_env.train_view import TrainView

_BLANK_LINE = "\n\n"
_EXAMPLES_HEAD = "## Examples\nWhat other people did, page by page; of each page only a part is shown."
_MAX_READ = 50  # sessions that are searched for some with all rationales; a log may have none


def prompt_messages(observation: Observation, options: PromptingOptions, *, examples: str = "") -> list[Message]:
    """Builds the messages of a request.

    Args:
        examples: The text of examples (examples_text), which is appended to the instructions.
    """
    system, *conversation = render_prompt(observation, options.prompt)
    instructions = _BLANK_LINE.join([system["content"], examples]) if examples else system["content"]
    messages = [Message(role="system", content=instructions), *conversation]
    return merge_system(messages) if options.system_role == "first_user" else messages


def without_earliest_page(observation: Observation) -> Observation | None:
    """Returns the observation without the earliest of its remaining past pages, or None if no past page is left."""
    history = observation["history"]
    for index, past in enumerate(history):
        if past["page"]:
            return {**observation, "history": (*history[:index], {**past, "page": ""}, *history[index + 1 :])}
    return None


def examples_text(store: TrainView, options: PromptingOptions) -> str:
    """Builds the text of the few-shot examples; "" if `options.shots` is 0.

    Raises:
        BadConfig: The train split has fewer sessions than `options.shots`.
    """
    shots = options.shots
    if shots == 0:
        return ""
    ids = store.session_ids()
    if shots > len(ids):
        raise BadConfig(f"shots is {shots}, but the train split of store '{store.name}' has {len(ids)} sessions")
    random.Random(options.shot_seed).shuffle(ids)
    sessions = [store.session(session_id) for session_id in ids[: max(shots, _MAX_READ)]]
    sessions.sort(key=lambda session: not all(step.rationale for step in session.steps))  # stable: in the drawn order
    texts, is_goal_shown = [_EXAMPLES_HEAD], store.context.goal == "shown"
    for number, session in enumerate(sessions[:shots], start=1):
        texts.append(f"### Person {number}" + (f"\nGoal: {session.goal}" if is_goal_shown and session.goal else ""))
        observations = observe_session(session, ContextConfig(marks=store.context.marks))
        for step, observation in zip(session.steps, observations, strict=True):
            action = action_json(written_action(step.action))
            texts.append(f"#### Page\n{shorten_page(observation['page'], options.shot_page_characters, action)}")
            texts.append(f"#### Reply\n{past_reply(step.rationale or '', action, options.prompt)}")
    return _BLANK_LINE.join(texts)
