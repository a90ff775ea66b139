"""The agent `prompting`: a language model behind a server, as it is, with no training.

    python -m benchmarks.leaderboard --out runs/zero --extraction lenient \\
        --agents "zero-shot=prompting?base_url=http://localhost:8000/v1&model=NAME"

The evaluation decides which parts of a session, and whose persona, are in the prompt (--context.scope,
--context.persona). The messages are for a model that was not trained on them: those of shop_env.prompts, but for the
format of past steps (options.History): a model copies what its own replies in the conversation look like, an empty
rationale for one. So a step without a rationale is described in words, in the message with the next page, and only
replies with one appear as the model's own.

    system (instructions, persona, goal, examples) · page_1 · reply_1 · page_2, "the person did …", page_3 · …

Messages alternate, as chat templates require, and each step's begin like those of the step before, so that a server can
share its prefix.

    TrainView ─► drawn sessions ─► each page as a window around its action ─► the reply, or the action in words

Of examples (few-shot), sessions whose every step has a rationale are drawn first, since they hold complete replies. No
persona of theirs is included: the persona arm of the context is about the shopper who is predicted.
"""

import random
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from agents.adapted import SeededAgent, TrainView
from agents.prompting.answers import NoAnswer
from agents.prompting.chat import Chat
from agents.prompting.formats import CHOICE_INSTRUCTIONS, choice_format, numbered, reply_format, reply_of_choice
from agents.prompting.options import History, PromptingOptions, read_options
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, reply_action
from shop_env.candidates import candidate_actions
from shop_env.observation import Observation, PastStep, shorten_page
from shop_env.prompts import INSTRUCTIONS, Message, render_prompt
from shop_env.replies import action_json, reply_json

_BLANK_LINE = "\n\n"
_EXAMPLES_HEAD = "## Examples\nWhat other people did, page by page; of each page only a part is shown."
_MOST_READ = 50  # sessions, in search of some with all rationales: a log may have none


class PromptingAgent(SeededAgent):
    """Asks a model behind an OpenAI-compatible server: zero-shot, few-shot, guided or choosing.

    Args:
        store: Its train split provides the examples of few-shot.
        options: A TOML file of options.
        arguments: Options (options.PromptingOptions); they override those of the file.

    Attributes:
        concurrency: How many calls an evaluation may make at once.
    """

    def __init__(self, store: TrainView | str | None = None, *, options: str | None = None, **arguments: Any) -> None:
        self.options: PromptingOptions = read_options(options, arguments)
        self.concurrency = self.options.concurrency
        if self.options.shots and store is None:
            raise BadConfig(f"shots is {self.options.shots}, and there is no store to draw examples from: give one")
        self._examples = "" if store is None else examples_text(TrainView.of(store), self.options)
        self._chat = Chat(self.options)

    @staticmethod
    def deciding_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments in a spec that decide replies, with the content of files: the identity of a row."""
        options = dict(arguments)
        store = options.pop("store", None)
        return read_options(options.pop("options", None), options).deciding() | ({"store": store} if store else {})

    def act(self, observation: Observation) -> str:
        """The model's reply."""
        return self._reply(observation, self._seed)

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str | Exception]:
        """A reply to each, or NoAnswer with its cause. Threads may call it at once."""
        answers: list[str | Exception] = []
        for observation, seed in zip(observations, seeds, strict=True):
            try:
                answers.append(self._reply(observation, seed))
            except Exception as error:  # the answers to the others are paid for
                answers.append(error)
        return answers

    def ask_anew(self) -> None:
        """From now on no stored answer is used."""
        self._chat.reuse = False

    def stop(self) -> None:
        """Sends nothing further; requests in flight are stored when they end."""
        self._chat.stop()

    def remarks(self) -> list[str]:
        """What users should know of its answers: how many were cut, what they cost."""
        shortened = self._chat.counts["shortened"]
        remarks = [f"without the earliest pages, since all were too long: {shortened:,} replies"] if shortened else []
        return [*remarks, *self._chat.remarks()]

    def close(self) -> None:
        """Closes the connections and the file of answers."""
        self._chat.close()

    def _reply(self, observation: Observation, seed: int | None) -> str:
        """The reply to the observation, or to as much of its past as the server takes."""
        seed = secrets.randbits(32) if seed is None else seed
        shortened = observation
        while True:
            try:
                reply = self._reply_to(shortened, seed)
            except NoAnswer as failure:
                shorter = without_earliest_page(shortened)
                if failure.cause != "too long" or not self.options.shorten or shorter is None:
                    raise
                shortened = shorter
            else:
                if shortened is not observation:
                    self._chat.count("shortened")
                return reply

    def _reply_to(self, observation: Observation, seed: int) -> str:
        options = self.options
        candidates = candidate_actions(observation) if options.choice else []
        fields: dict[str, Any] = {
            "messages": prompt_messages(observation, options, examples=self._examples, candidates=candidates)
        }
        if options.schema:
            fields["response_format"] = choice_format(len(candidates)) if options.choice else reply_format()
        text = self._chat.ask(fields, seed=seed).text
        return reply_of_choice(text, candidates) if options.choice else text


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
            return {**observation, "history": (*history[:index], {**past, "page": ""}, *history[index + 1 :])}
    return None


def examples_text(store: TrainView, options: PromptingOptions) -> str:
    """The examples as text; "" for none.

    Raises:
        BadConfig: The train split has fewer sessions.
    """
    shots = options.shots
    if shots == 0:
        return ""
    ids = store.session_ids()
    if shots > len(ids):
        raise BadConfig(f"shots is {shots}, but the train split of store '{store.name}' has {len(ids)} sessions")
    random.Random(options.shot_seed).shuffle(ids)
    sessions = [store.session(session_id) for session_id in ids[: max(shots, _MOST_READ)]]
    sessions.sort(key=lambda session: not all(step.rationale for step in session.steps))  # stable: in the drawn order
    texts = [_EXAMPLES_HEAD]
    for number, session in enumerate(sessions[:shots], start=1):
        texts.append(f"### Person {number}" + (f"\nGoal: {session.goal}" if session.goal else ""))
        for step in session.steps:
            action, rationale = action_json(reply_action(step.action)), step.rationale or ""
            texts.append(f"#### Page\n{shorten_page(step.page, options.shot_page_characters, len, action)}")
            is_reply = _is_reply(rationale, options.history_format)
            texts.append(f"#### Reply\n{reply_json(rationale, action)}" if is_reply else _describe(action, rationale))
    return _BLANK_LINE.join(texts)


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
