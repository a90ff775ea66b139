"""Turns sessions into tokens, and finds the span of every prompt and reply.

    system · page_1 · reply_1 · page_2 · … · page_T · reply_T      one list of tokens (a trunk)
    └───────── prompt of step 1 ────┘└reply┘                        every prompt is a prefix of it (shop_env.prompts)

A prompt is what the chat template renders for the messages up to the step's page, with its generation prompt
(train/chat_template.py). A message is tokenized together with the template's text between the last special token and
the message, as in the whole conversation. Replies are tokenized alone, as they are sampled. So the tokens of a prompt
never depend on what follows, and single past pages can be dropped. If the template writes past replies otherwise than
behind its generation prompt, no prompt begins with the one before, and each step has a trunk of its own.

Only the template writes special tokens. In pages, goals, personas and replies a text like `<|im_end|>` is split into
ordinary tokens, and a special token within a sampled reply makes it malformed (SPECIAL_MARK of shop_env.replies).

If a prompt is too long, as few as possible of the earliest pages are dropped, in blocks of `context.page_block`.
Actions and rationales stay (Customer-R1, section 4). If a step's own page is too long even so, `long_pages` decides:
`shorten` cuts it to a window (shop_env/page_budget.py), `skip` leaves the step out. Training, sampling and evaluation
all use `_Conversation`, so that a step has the same prompt in all of them.

An action without a logged name or text (`shop_env.reward.matching.unlogged_fields`) is no target: it cannot be
scored, and training on it would teach `"name": ""`. An action that the import inferred is one only on request. Their
pages and replies stay in the trunk as history of later steps, but are not among `replies`: no loss, no sampled replies.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from replay_sessions.schema import Action, Session, Step, written_action
from shop_env.observation import ContextConfig, History, Observation, observe_session
from shop_env.page_budget import align_window, cut_window, find_element, shows_target, window_start
from shop_env.prompts import PromptConfig, past_reply, render_prompt
from shop_env.replies import SPECIAL_MARK, action_json, format_reply
from shop_env.reward.matching import unlogged_fields
from train.chat_template import encode, prompts_grow, special_tokens, stop_token, template_tokens

LongPages = Literal["shorten", "skip"]
_DEFAULT_CONTEXT = ContextConfig()


@dataclass(frozen=True)
class ReplySpan:
    """A step's logged reply: its prompt is `tokens[:start]`, and the history shows it as `tokens[start:end]`.

    Attributes:
        target: The target of SFT if it differs from the reply in the history, which may omit rationales. If None, the
            target is `tokens[start:end]`.
        target_shown: Whether the prompt shows the action's element, or the action has none.
    """

    step_index: int
    start: int
    end: int
    action: Action
    target: list[int] | None = None
    target_shown: bool = True


@dataclass(frozen=True)
class SessionTokens:
    """A session as one list of tokens, or those of its steps that see the same pages.

    Attributes:
        session_id: The session.
        tokens: The trunk.
        replies: The replies that are trained on.
        pages_left_out: The number of the earliest pages, which did not fit.
        page_cut: Whether the trunk has a single step, which sees only a window of its own page.
    """

    session_id: str
    tokens: Sequence[int]  # a slice of them is a list
    replies: list[ReplySpan]
    pages_left_out: int = 0
    page_cut: bool = False


class _Fit(NamedTuple):
    """The pages that fit into a prompt.

    Attributes:
        left_out: The number of the earliest pages, which are left out.
        window: The offsets of the window of the step's own page that is shown. If None, the whole page.
        page_tokens: The tokens of the window.
    """

    left_out: int
    window: tuple[int, int] | None = None
    page_tokens: tuple[int, ...] = ()


class FittedPrompt(NamedTuple):
    """A prompt that fits.

    Attributes:
        tokens: The tokens of the prompt.
        observation: The part of the observation that the prompt shows.
        pages_left_out: The number of earlier pages that were dropped.
        window: The offsets of the window of the observation's own page that the prompt shows; None if it shows all.
    """

    tokens: list[int]
    observation: Observation
    pages_left_out: int
    window: tuple[int, int] | None


def fit_prompt(
    tokenizer: Any,
    observation: Observation,
    prompt: PromptConfig,
    max_tokens: int,
    long_pages: LongPages = "shorten",
    context: ContextConfig = _DEFAULT_CONTEXT,
    encoded: dict[str, list[int]] | None = None,
) -> FittedPrompt | None:
    """Builds the prompt of an observation with at most `max_tokens` tokens; returns None if it does not fit.

    Args:
        encoded: The tokens of texts, to which those of this prompt are added. The steps of a session share most texts.
    """
    conversation = _Conversation(tokenizer, observation, prompt, context, encoded=encoded)
    fit = conversation.fit(conversation.last, max_tokens, long_pages)
    if fit is None:
        return None
    dropped, remaining = observation["history"][: fit.left_out], observation["history"][fit.left_out :]
    page = observation["page"] if fit.window is None else cut_window(observation["page"], *fit.window)
    seen: Observation = {**observation, "page": page, "history": (*_without_pages(dropped), *remaining)}
    left_out = sum(bool(past["page"]) for past in dropped)
    return FittedPrompt(conversation.prompt(conversation.last, fit), seen, left_out, fit.window)


def tokenize_session(
    tokenizer: Any,
    session: Session,
    context: ContextConfig,
    prompt: PromptConfig,
    max_prompt_tokens: int,
    personas: Mapping[str, str] | None = None,
    long_pages: LongPages = "shorten",
    *,
    inferred: bool = False,
) -> list[SessionTokens]:
    """Turns a session into trunks: one if its longest prompt has at most `max_prompt_tokens`, else several.

    Steps that drop the same pages share a trunk. A step that sees a window of its page has its own trunk, because later
    steps show nothing of that page. Steps that do not fit or are no targets are left out; `sum(len(t.replies))` is the
    number of the others. If prompts are no prefixes of one another (`latest_step`, budgets, some chat templates), each
    step has its own trunk.

    Args:
        tokenizer: The tokenizer of the model, with its chat template.
        session: The session.
        context: The part of the session that an observation shows.
        prompt: The form of the prompt. A prompt without rationales teaches empty rationales (Customer-R1, table 4,
            "without rationale").
        max_prompt_tokens: The largest number of tokens of a prompt.
        personas: The texts of the users' personas, as in `observe_session`.
        long_pages: The treatment of steps with a page that is too long.
        inferred: Whether actions that the import inferred are targets too.
    """
    observations = observe_session(session, context, personas)
    trunks: list[SessionTokens] = []
    grow, encoded = prompts_grow(tokenizer), dict[str, list[int]]()
    targets = [step for step, each in enumerate(session.steps) if is_target(each, inferred=inferred)]
    for observation in observations[-1:] if context.grows_by_appending else [observations[step] for step in targets]:
        last = session.steps[observation["step"]]
        rationale = (last.rationale or "") if context.rationales else ""
        reply = past_reply(rationale, action_json(written_action(last.action)), prompt)
        conversation = _Conversation(tokenizer, observation, prompt, context, reply, encoded)
        by_fit: dict[tuple[_Fit, int], list[int]] = {}
        for step in targets if context.grows_by_appending else [observation["step"]]:
            fit = conversation.fit(step, max_prompt_tokens, long_pages)
            if fit is not None:
                by_fit.setdefault((fit, 0 if grow else step), []).append(step)
        for (fit, _), steps in by_fit.items():
            replies = [_reply(tokenizer, session, conversation, step, fit, prompt) for step in steps]
            tokens = conversation.prompt(steps[-1], fit) + conversation.reply(steps[-1])
            left_out = fit.left_out if context.scope == "whole_session" else 0
            trunks.append(SessionTokens(session.session_id, tokens, replies, left_out, fit.window is not None))
    return trunks


def is_target(step: Step, *, inferred: bool) -> bool:
    """Returns whether a step is trained on, if its page fits."""
    return not unlogged_fields(step.action) and (inferred or not step.is_inferred)


def _reply(
    tokenizer: Any, session: Session, conversation: "_Conversation", index: int, fit: _Fit, prompt: PromptConfig
) -> ReplySpan:
    step = session.steps[index]
    start = conversation.prompt_length(index, fit)
    reply = conversation.reply(index)
    text = format_reply((step.rationale or "") if prompt.rationales else "", step.action)
    target = None if text == conversation.reply_text(index) else reply_tokens(tokenizer, [text])[0]
    is_shown = conversation.shows_target(index, fit, step.action)
    return ReplySpan(index, start, start + len(reply), step.action, target, is_shown)


class _Conversation:
    """The messages of an observation as tokens, with and without each past page.

    Message 0 is the system's. The page of step t is message 1 + 2t and its reply 2 + 2t, both counted from 0. The
    prompt of each step is what the chat template renders for the messages up to its page.

    Args:
        reply: The text of the reply to the observation. If None, only prompts can be built.
        encoded: See fit_prompt.
    """

    def __init__(
        self,
        tokenizer: Any,
        observation: Observation,
        prompt: PromptConfig,
        context: ContextConfig,
        reply: str | None = None,
        encoded: dict[str, list[int]] | None = None,
    ) -> None:
        self._encoded = {} if encoded is None else encoded
        without_pages: Observation = {**observation, "page": "", "history": _without_pages(observation["history"])}
        self._tokenizer, self._block = tokenizer, context.page_block
        self._page_texts = [*(past["page"] for past in observation["history"]), observation["page"]]
        self._actions = [None, *(past["action"] for past in observation["history"])]  # the action before each step
        self._messages = render_prompt(without_pages, prompt)
        self._template = template_tokens(tokenizer, self._messages)
        self._pageless = self._encode_messages(range(len(self._messages)), [each["content"] for each in self._messages])
        self.last = len(observation["history"])  # the observation's own step
        self._replies = [] if reply is None else [*(each["content"] for each in self._messages[2::2]), reply]
        self._reply_tokens = reply_tokens(tokenizer, self._replies) if self._replies else []
        without = [message["content"] for message in self._messages[1::2]]
        page_texts = [page or text for page, text in zip(self._page_texts, without, strict=True)]
        self._pages = self._encode_messages(range(1, 2 + 2 * self.last, 2), page_texts)
        self._ends = [0, *accumulate(map(len, self._pageless))]
        more = [len(page) - len(text) for page, text in zip(self._pages, self._pageless[1::2], strict=True)]
        self._page_ends = [0, *accumulate(more)]  # the tokens that the first page adds, the first two, …

    def _encode_messages(self, indices: Iterable[int], texts: Sequence[str]) -> list[list[int]]:
        contents = [self._template.content(index, text) for index, text in zip(indices, texts, strict=True)]
        missing = [content for content in dict.fromkeys(contents) if content not in self._encoded]
        self._encoded |= zip(missing, encode(self._tokenizer, missing) if missing else [], strict=True)
        return [self._encoded[content] for content in contents]

    def _between(self, step: int) -> list[list[int]]:
        """Returns the tokens of the template in a step's prompt: before each message, and the generation prompt."""
        return template_tokens(self._tokenizer, self._messages[: 2 + 2 * step]).between

    def fit(self, step: int, max_tokens: int, long_pages: LongPages) -> _Fit | None:
        """Determines the pages that a step's prompt of at most `max_tokens` shows; returns None if it does not fit."""
        left_out = 0 if self._length(step, 0) <= max_tokens else step + 1  # mostly all pages fit
        while left_out > 0 and self._length(step, left_out - 1) <= max_tokens:
            left_out -= 1
        if left_out <= step:
            return _Fit(min(step, -(-left_out // self._block) * self._block))
        if long_pages == "skip":
            return None
        return self._shortened(step, max_tokens - self._length(step, step) + len(self._pages[step]))

    def _shortened(self, step: int, room: int) -> _Fit | None:
        """Fits a window of the step's page into `room` tokens; returns None if no window fits."""
        page, length = self._page_texts[step], len(self._pages[step])
        focus, aim = find_element(page, self._actions[step]), room - room // 50
        width = len(page) * aim // max(1, length)
        is_calibrated = False  # True once `width` follows from the characters per token of a window
        while width > 0:
            start = window_start(focus, width, len(page))
            window = align_window(page, start, start + width)
            if window is None:
                break
            (tokens,) = self._encode_messages([1 + 2 * step], [cut_window(page, *window)])
            if len(tokens) <= room and (is_calibrated or len(tokens) >= 0.9 * room):
                return _Fit(step, window, tuple(tokens))
            width = width * aim // len(tokens) - is_calibrated
            is_calibrated = True
        return None

    def _length(self, step: int, left_out: int) -> int:
        pages = self._page_ends[step + 1] - self._page_ends[left_out]
        return sum(map(len, self._between(step))) + self._ends[2 + 2 * step] + pages

    def shows_target(self, step: int, fit: _Fit, action: Action) -> bool:
        """Returns whether the part of a step's own page that the prompt shows has the element of an action."""
        return shows_target(self._page_texts[step], fit.window, action)

    def prompt_length(self, step: int, fit: _Fit) -> int:
        """Returns the number of tokens of `prompt`, without building it."""
        cut = 0 if fit.window is None else len(fit.page_tokens) - len(self._pages[step])
        return self._length(step, fit.left_out) + cut

    def prompt(self, step: int, fit: _Fit) -> list[int]:
        """Returns the tokens of a step's prompt, without the pages that do not fit."""
        tokens: list[int] = []
        *between, generation_prompt = self._between(step)
        for index, before in enumerate(between):
            is_shown = index % 2 == 1 and index // 2 >= fit.left_out
            is_cut = fit.window is not None and index == 1 + 2 * step
            content = self._pages[index // 2] if is_shown else self._pageless[index]
            tokens += [*before, *(fit.page_tokens if is_cut else content)]
        return tokens + generation_prompt

    def reply(self, step: int) -> list[int]:
        """Returns the tokens of a step's reply as in the history, with the token that ends it."""
        return self._reply_tokens[step]

    def reply_text(self, step: int) -> str:
        """Returns the text of `reply`, without the token that ends it."""
        return self._replies[step]


def _without_pages(history: History) -> History:
    return History({**past, "page": ""} for past in history)


def reply_tokens(tokenizer: Any, replies: Sequence[str]) -> list[list[int]]:
    """Encodes replies as a policy would sample them, with the stop token."""
    stop = stop_token(tokenizer)
    return [[*ids, stop] for ids in encode(tokenizer, replies)]


def decode_replies(tokenizer: Any, replies: Iterable[Sequence[int]]) -> list[str]:
    """Decodes sampled replies, without the stop token.

    The text of a reply with another special token gets a mark that makes it malformed (SPECIAL_MARK).
    """
    special, stop = special_tokens(tokenizer), stop_token(tokenizer)
    texts = []
    for reply in replies:
        written = reply[:-1] if reply and reply[-1] == stop else reply
        texts.append(SPECIAL_MARK * (not special.isdisjoint(written)) + tokenizer.decode(written))
    return texts


def rationale_tokens(tokenizer: Any, reply: Sequence[int], span: tuple[int, int]) -> tuple[int, int]:
    """Returns (first, end) such that `reply[first:end]` are the tokens of a reply's rationale.

    Args:
        tokenizer: The tokenizer that decodes the reply.
        reply: The tokens of the reply.
        span: The span of the rationale in the reply's text, in characters (`shop_env.replies.Reply.rationale_span`).
            A token that is only partly in it counts.
    """
    first = end = length = 0
    for index in range(len(reply)):
        if length >= span[1]:
            break
        # Decoded from the start each time, because a character may need several tokens.
        length = len(tokenizer.decode(reply[: index + 1], skip_special_tokens=True))
        end = index + 1
        if length <= span[0]:
            first = end
    return first, end
