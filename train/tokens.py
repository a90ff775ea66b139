"""Sessions as tokens: the chat template applied once, with the place of every prompt and reply known.

    system · page_1 · reply_1 · page_2 · … · page_T · reply_T      one list of tokens (a trunk)
    └───────── prompt of step 1 ────┘└reply┘                        every prompt is a prefix of it (shop_env.prompts)

The text between messages is learnt from the template by rendering placeholders; it and each message are tokenised on
their own, so that a prompt's tokens never depend on what follows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action, Session
from shop_env.context import ContextConfig
from shop_env.observation import Observation, observe_session
from shop_env.prompts import Message, PromptConfig, render_prompt
from shop_env.replies import format_reply

__all__ = [
    "ReplySpan",
    "SessionTokens",
    "decode_replies",
    "prompt_tokens",
    "rationale_tokens",
    "reply_tokens",
    "stop_token",
    "tokenize_session",
]


@dataclass(frozen=True)
class ReplySpan:
    """Where one step's logged reply lies in the tokens: prompt `tokens[:start]`, reply `tokens[start:end]`."""

    step_index: int
    start: int
    end: int
    action: Action


@dataclass(frozen=True)
class SessionTokens:
    """A session, or the part of it that fits the token limit, as one list of tokens."""

    session_id: str
    tokens: list[int]
    replies: list[ReplySpan]


def prompt_tokens(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """The tokens of a prompt, up to and including what the template puts before a reply."""
    between = _template_text(tokenizer, tokenizer.chat_template, tuple(message["role"] for message in messages))
    texts = [*_interleave(between, [message["content"] for message in messages])]
    return [token for ids in _encode(tokenizer, texts) for token in ids]


def tokenize_session(
    tokenizer: Any,
    session: Session,
    context: ContextConfig,
    prompt: PromptConfig,
    max_tokens: int,
    personas: Mapping[str, str] | None = None,
) -> list[SessionTokens]:
    """A session as trunks: one where it fits into `max_tokens`, else several.

    Each trunk holds as many steps as fit. Where a session goes on in a second trunk, the pages of the steps before it
    are left out and their actions and rationales kept (the earliest pages go first: Customer-R1, section 4). A step
    whose own page does not fit even so is left out; `sum(len(t.replies))` tells how many are there. In a context whose
    prompts are no prefixes of one another (`latest_step`, budgets) each step is a trunk of its own.
    """
    observations = observe_session(session, context, personas)
    if not context.grows_by_appending:
        steps = [_trunk(tokenizer, session, seen, seen["step"], context, prompt, max_tokens) for seen in observations]
        return [trunk for trunk in steps if trunk.replies]
    trunks: list[SessionTokens] = []
    first = 0
    while first < len(session.steps):
        trunk = _trunk(tokenizer, session, observations[-1], first, context, prompt, max_tokens)
        if trunk.replies:
            trunks.append(trunk)
        first = trunk.replies[-1].step_index + 1 if trunk.replies else first + 1
    return trunks


def _trunk(
    tokenizer: Any,
    session: Session,
    observation: Observation,
    first: int,
    context: ContextConfig,
    prompt: PromptConfig,
    max_tokens: int,
) -> SessionTokens:
    """The steps from `first` to the observation's own that fit, behind the page-less history of those before."""
    if context.grows_by_appending:
        for past in observation["history"][:first]:
            past["page"] = ""
    last = session.steps[observation["step"]]
    reply = format_reply((last.rationale or "") if context.rationales else "", last.action)
    messages = [*render_prompt(observation, prompt), Message(role="assistant", content=reply)]
    between = _template_text(tokenizer, tokenizer.chat_template, tuple(message["role"] for message in messages))
    encoded = _encode(tokenizer, _interleave(between, [message["content"] for message in messages]))
    tokens: list[int] = []
    replies: list[ReplySpan] = []
    for index, message in enumerate(messages):
        tokens += encoded[2 * index]
        start = len(tokens)
        tokens += encoded[2 * index + 1]
        if message["role"] == "assistant":
            end = len(tokens) + 1  # the end-of-turn token is part of the reply
            step_index = sum(1 for earlier in messages[:index] if earlier["role"] == "assistant")
            if end > max_tokens:
                break
            if step_index >= first:
                replies.append(ReplySpan(step_index, start, end, session.steps[step_index].action))
    tokens += encoded[-1] if len(encoded) % 2 else []
    return SessionTokens(session.session_id, tokens[: replies[-1].end if replies else 0], replies)


def _interleave(between: Sequence[str], contents: Sequence[str]) -> list[str]:
    texts = [text for pair in zip(between, contents, strict=False) for text in pair]
    return [*texts, *between[len(contents) :]]


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
