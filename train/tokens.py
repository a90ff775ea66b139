"""Sessions as tokens: the chat template applied once, with the place of every prompt and reply known.

    system · page_1 · reply_1 · page_2 · … · page_T · reply_T      one list of tokens (a trunk)
    └───────── prompt of step 1 ────┘└reply┘                        every prompt is a prefix of it (shop_env.prompts)

The text between messages is learnt from the template by rendering placeholders; it and each message are tokenised on
their own, so that a prompt's tokens never depend on what follows, and a past page can be left out by itself.

Where a prompt is too long, as many of the earliest pages are left out as it takes, and no more; actions and rationales
stay (Customer-R1, section 4). Training and evaluation both ask `_Conversation` for that, so a step is trained on in the
very prompt in which it is tested.

An action whose name or text its log does not know (`shop_env.reward.terms.unlogged_fields`) is no target: it cannot be
scored, and to learn it would be to learn `"name": ""`. Its page and its reply stay in the trunk as history of the steps
behind it, and among `replies` it is left out: it carries no loss and gets no sampled replies.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action, Session
from shop_env.context import ContextConfig
from shop_env.observation import History, Observation, observe_session
from shop_env.prompts import Message, PromptConfig, render_prompt
from shop_env.replies import format_reply
from shop_env.reward.terms import unlogged_fields

__all__ = [
    "ReplySpan",
    "SessionTokens",
    "decode_replies",
    "fitted_messages",
    "prompt_tokens",
    "rationale_tokens",
    "reply_tokens",
    "stop_token",
    "tokenize_session",
]


@dataclass(frozen=True)
class ReplySpan:
    """A step's logged reply: its prompt is `tokens[:start]`, and the history shows it as `tokens[start:end]`.

    Attributes:
        target: What SFT teaches where that is not what the history shows (a rationale that histories leave out); None:
            `tokens[start:end]`.
    """

    step_index: int
    start: int
    end: int
    action: Action
    target: list[int] | None = None


@dataclass(frozen=True)
class SessionTokens:
    """A session, or those steps of it that see the same pages, as one list of tokens; `replies` are to learn.

    Attributes:
        pages_left_out: So many of the earliest pages did not fit.
    """

    session_id: str
    tokens: Sequence[int]  # a slice of them is a list
    replies: list[ReplySpan]
    pages_left_out: int = 0


def prompt_tokens(
    tokenizer: Any, observation: Observation, prompt: PromptConfig, max_tokens: int | None = None
) -> list[int]:
    """The tokens of an observation's prompt, up to and including what the template puts before a reply.

    Args:
        max_tokens: The earliest pages are left out until so many are enough; where the observation's own page is too
            much by itself, the prompt is longer.
    """
    conversation = _Conversation(tokenizer, observation, prompt)
    step = conversation.last
    left_out = conversation.pages_left_out(step, max_tokens)
    return conversation.prompt(step, step if left_out is None else left_out)


def fitted_messages(
    tokenizer: Any, observation: Observation, prompt: PromptConfig, max_tokens: int
) -> list[Message] | None:
    """The chat messages whose tokens are `prompt_tokens`, for who applies the template; None: they do not fit."""
    conversation = _Conversation(tokenizer, observation, prompt)
    left_out = conversation.pages_left_out(conversation.last, max_tokens)
    if left_out is None:
        return None
    past = observation["history"]
    shown = (*_without_pages(past[:left_out]), *past[left_out:])
    return render_prompt({**observation, "history": shown}, prompt)


def tokenize_session(
    tokenizer: Any,
    session: Session,
    context: ContextConfig,
    prompt: PromptConfig,
    max_prompt_tokens: int,
    personas: Mapping[str, str] | None = None,
    *,
    teach_rationales: bool = True,
) -> list[SessionTokens]:
    """A session as trunks: one where its longest prompt has at most `max_prompt_tokens`, else several.

    Steps that leave out the same pages share a trunk. A step whose own page does not fit even so is left out, as is one
    whose target was not logged; `sum(len(t.replies))` tells how many are there. In a context whose prompts are no
    prefixes of one another (`latest_step`, budgets) each step is a trunk of its own.

    Args:
        teach_rationales: False teaches replies with an empty rationale (Customer-R1, table 4, "without rationale").
    """
    observations = observe_session(session, context, personas)
    together = observations[-1:] if context.grows_by_appending else observations
    trunks: list[SessionTokens] = []
    for seen in together:
        last = session.steps[seen["step"]]
        reply = format_reply((last.rationale or "") if context.rationales else "", last.action)
        conversation = _Conversation(tokenizer, seen, prompt, reply)
        steps = range(len(session.steps)) if context.grows_by_appending else [seen["step"]]
        learnable = [step for step in steps if not unlogged_fields(session.steps[step].action)]
        wanted = [(step, conversation.pages_left_out(step, max_prompt_tokens)) for step in learnable]
        fitting = [(step, left_out) for step, left_out in wanted if left_out is not None]
        for left_out in dict.fromkeys(left_out for _, left_out in fitting):
            of_trunk = [step for step, pages in fitting if pages == left_out]
            replies = [_reply(tokenizer, session, conversation, step, left_out, teach_rationales) for step in of_trunk]
            tokens = conversation.prompt(of_trunk[-1], left_out) + conversation.reply(of_trunk[-1])
            trunks.append(SessionTokens(session.session_id, tokens, replies, left_out))
    return trunks


def _reply(
    tokenizer: Any, session: Session, conversation: "_Conversation", index: int, left_out: int, teach_rationales: bool
) -> ReplySpan:
    step = session.steps[index]
    start = conversation.prompt_length(index, left_out)
    shown = conversation.reply(index)
    text = format_reply((step.rationale or "") if teach_rationales else "", step.action)
    taught = None if text == conversation.reply_text(index) else [*_encode(tokenizer, [text])[0], shown[-1]]
    return ReplySpan(index, start, start + len(shown), step.action, taught)


class _Conversation:
    """An observation's messages as tokens, with and without each past page.

    Message 0 is the system's; step t's page is message 1 + 2t and its reply 2 + 2t, both counted from 0.

    Args:
        reply: What follows the observation's own page; None: nothing does.
    """

    def __init__(
        self, tokenizer: Any, observation: Observation, prompt: PromptConfig, reply: str | None = None
    ) -> None:
        pageless: Observation = {**observation, "history": _without_pages(observation["history"])}
        self._messages = render_prompt(observation, prompt)
        if reply is not None:
            self._messages.append(Message(role="assistant", content=reply))
        without = [message["content"] for message in render_prompt(pageless, prompt)]
        contents = [message["content"] for message in self._messages]
        roles = tuple(message["role"] for message in self._messages)
        between = _template_text(tokenizer, tokenizer.chat_template, roles)
        encoded = _encode(tokenizer, [*between, *contents, *without])
        self._between = encoded[: len(between)]
        self._shown = encoded[len(between) : len(between) + len(contents)]
        self._without = encoded[len(between) + len(contents) :]
        self.last = len(observation["history"])  # the observation's own step
        both = zip(self._between, self._shown, strict=False)
        self._ends = [0, *accumulate(len(before) + len(message) for before, message in both)]
        pages = range(1, 1 + 2 * self.last, 2)
        self._saved = [0, *accumulate(len(self._shown[page]) - len(self._without[page]) for page in pages)]

    def pages_left_out(self, step: int, max_tokens: int | None) -> int | None:
        """How many of the earliest pages `step`'s prompt has to do without; None: it does not fit at all."""
        if max_tokens is None:
            return 0
        return next((k for k in range(step + 1) if self.prompt_length(step, k) <= max_tokens), None)

    def prompt_length(self, step: int, left_out: int) -> int:
        """The length of `prompt`."""
        return self._ends[2 + 2 * step] + len(self._between[2 + 2 * step]) - self._saved[left_out]

    def prompt(self, step: int, left_out: int) -> list[int]:
        """The tokens of a step's prompt without the `left_out` earliest pages."""
        tokens: list[int] = []
        for index in range(2 + 2 * step):
            is_left_out = index % 2 == 1 and index // 2 < left_out
            tokens += self._between[index] + (self._without if is_left_out else self._shown)[index]
        return tokens + self._between[2 + 2 * step]

    def reply(self, step: int) -> list[int]:
        """A step's reply as the history shows it, with the end-of-turn token that the template puts behind it."""
        return [*self._shown[2 + 2 * step], self._between[3 + 2 * step][0]]

    def reply_text(self, step: int) -> str:
        """The same as text, without the end."""
        return self._messages[2 + 2 * step]["content"]


def _without_pages(history: History) -> History:
    return History({**past, "page": ""} for past in history)


def _encode(tokenizer: Any, texts: Iterable[str]) -> list[list[int]]:
    ids: list[list[int]] = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    return ids


@lru_cache(maxsize=256)
def _template_text(tokenizer: Any, template: str | None, roles: tuple[str, ...]) -> list[str]:
    """What the chat template writes before each message, and after the last one.

    For a prompt (last role user) the last text ends with what stands before a reply.

    Raises:
        BadConfig: The template changes a message or its place, so that prompts would not be prefixes of one another.
    """
    marks = [f"\u2063{index}\u2063" for index in range(len(roles))]
    messages = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
    rendered: str = tokenizer.apply_chat_template(
        messages, chat_template=template, tokenize=False, add_generation_prompt=roles[-1] == "user"
    )
    between = []
    for mark in marks:
        before, found, rendered = rendered.partition(mark)
        if not found:
            raise BadConfig("this model's chat template leaves out or reorders messages; give one that does not.")
        between.append(before)
    return [*between, rendered]


def reply_tokens(tokenizer: Any, replies: Sequence[str]) -> list[list[int]]:
    """The tokens of replies as a policy would sample them, with the stop token."""
    stop = stop_token(tokenizer)
    return [[*ids, stop] for ids in _encode(tokenizer, replies)]


def stop_token(tokenizer: Any) -> int:
    """The token that ends a reply: what the chat template writes first behind one, whatever else the tokenizer names.

    SFT teaches it, sampling waits for it and nothing else.

    Raises:
        BadConfig: The template writes no special token of its own there.
    """
    if not tokenizer.chat_template:
        raise BadConfig("its tokenizer has no chat template, so nothing says how a prompt is written or a reply ends.")
    roles = ("system", "user", "assistant", "user")
    within = _template_text(tokenizer, tokenizer.chat_template, roles)[3]
    at_the_end = _template_text(tokenizer, tokenizer.chat_template, roles[:3])[3]
    first, last = (next(iter(ids), None) for ids in _encode(tokenizer, [within, at_the_end]))
    named = tokenizer.added_tokens_decoder.get(first)
    if first is None or first != last or named is None or not named.special:
        raise BadConfig(
            f"behind a reply its chat template writes {within!r} before another message and {at_the_end!r} at the end; "
            "both must begin with the same special token, or nothing can end a reply."
        )
    return first


def decode_replies(tokenizer: Any, replies: Iterable[Sequence[int]]) -> list[str]:
    """The texts of sampled replies, without the stop token."""
    return [tokenizer.decode(reply, skip_special_tokens=True) for reply in replies]


def rationale_tokens(tokenizer: Any, reply: Sequence[int], span: tuple[int, int]) -> tuple[int, int]:
    """Which of a reply's tokens hold its rationale: `reply[first:end]`.

    Args:
        span: Where the rationale lies in the reply's text, in characters (`shop_env.replies.Reply.rationale_span`).
            A token that lies only partly in it counts.
    """
    first = end = 0
    written = 0
    for index in range(len(reply)):
        if written >= span[1]:
            break
        before, written = written, len(tokenizer.decode(reply[: index + 1], skip_special_tokens=True))
        if written <= span[0]:
            first = index + 1
        elif before < span[1]:
            end = index + 1
    return first, max(first, end)
