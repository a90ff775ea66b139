"""A tokenizer's chat template: the text and the tokens that it writes around messages, and what ends a reply.

    roles ─► messages with marks as contents ─► the rendered template, split at the marks ─► TemplateTokens

A prompt is what the template renders for the messages up to a page, with the generation prompt. Some templates write
the text before past replies otherwise than their generation prompt (Qwen3 without thinking, DeepSeek), so that the
prompts of a session are no prefixes of one another: `prompts_grow` is False, and each step has a trunk of its own.

A template that refuses a system message gets its text at the head of the first user message (`chat_messages`).

What a template depends on besides messages is set once, in a first line that `bind_template` writes before it:
variables such as `enable_thinking`, and the date in place of today's. So every reader of a checkpoint, servers and
other trainers included, renders the same prompts.
"""

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from replay_sessions.foundation.errors import BadConfig, first_line
from shop_env.prompts import Message, merge_system
from train.time_limit import time_limit

TEMPLATE_LIMIT_S = 10.0  # rendering a conversation takes milliseconds

_HEAD = "{# set by shop-r1 #}"
_RESERVED = {"messages", "add_generation_prompt", "continue_final_message", "tools", "documents"}
_DATE_CALL = re.compile(r"strftime_now\(\s*(?:'([^']*)'|\"([^\"]*)\")\s*\)")
_OPENED = re.compile(r"<(think|thinking|thought|reasoning)>\s*$", re.IGNORECASE)
# Blanks around a mark that no template writes itself: those that are missing in the rendered text were removed by it.
_BEFORE, _AFTER = "\f", "\v"


class TemplateTokens(NamedTuple):
    """The tokens that a template writes around the messages of a conversation.

    Attributes:
        between: The tokens before each message and after the last one. They end where a special token ends.
        beginnings: The rest of the text before each message, which is tokenized with the message.
        keeps_blanks: Whether the template keeps the blanks at the beginning and at the end of each message.
    """

    between: list[list[int]]
    beginnings: list[str]
    keeps_blanks: list[tuple[bool, bool]]

    def content(self, index: int, text: str) -> str:
        """Returns the text of message `index` as it is tokenized."""
        first, last = self.keeps_blanks[index]
        text = text if first else text.lstrip()
        return self.beginnings[index] + (text if last else text.rstrip())


class _Refused(BadConfig):
    """Messages that a template refuses."""


def encode(tokenizer: Any, texts: Iterable[str], *, special: bool = False) -> list[list[int]]:
    """Encodes texts; special tokens are recognized if `special`, which is for texts of the template only."""
    options = {"add_special_tokens": False, "split_special_tokens": not special}
    ids: list[list[int]] = tokenizer(list(texts), **options)["input_ids"]
    return ids


def special_tokens(tokenizer: Any) -> set[int]:
    """Returns the special tokens of the vocabulary."""
    return {token for token, added in tokenizer.added_tokens_decoder.items() if added.special}


def bind_template(tokenizer: Any, variables: Mapping[str, Any], date: str | None) -> None:
    """Sets variables and the date in the first line of the tokenizer's template, in place of those set before.

    Args:
        tokenizer: The tokenizer, which is changed.
        variables: The template's variables, JSON values by name.
        date: The day, as 2026-11-29, that a template writes which asks for today's date; None leaves it today's.

    Raises:
        BadConfig: The template reads no such variable, or asks for the date in a form that is not known beforehand.
    """
    template: str | None = tokenizer.chat_template
    if isinstance(template, dict):  # by use; the other templates are for tools and documents
        template = tokenizer.chat_template = template.get("default")
    if not template:
        return  # stop_token raises
    if template.startswith(_HEAD):
        _, _, template = template.partition("\n")
    lines = []
    for name, value in variables.items():
        if not name.isidentifier() or name in _RESERVED or not re.search(rf"\b{name}\b", template):
            raise BadConfig(f"template_variables has {name!r}, and the model's chat template reads no such variable.")
        lines.append(f"{{% set {name} = {value!r} %}}")
    if date is not None and writes_date(template):
        lines.append(_frozen_date(template, date))
    tokenizer.chat_template = f"{_HEAD}{''.join(lines)}\n{template}" if lines else template


def today() -> str:
    """Returns the day, as 2026-11-29, by UTC."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def writes_date(template: str) -> bool:
    """Returns whether a template asks for today's date."""
    return "strftime_now(" in template


def _frozen_date(template: str, date: str) -> str:
    formats = {single or double for single, double in _DATE_CALL.findall(template)}
    if len(_DATE_CALL.findall(template)) != template.count("strftime_now("):
        raise BadConfig(
            "the model's chat template calls strftime_now with something other than a text, so that its date cannot be "
            "frozen; give the model another template."
        )
    try:
        day = datetime.date.fromisoformat(date)
    except (TypeError, ValueError) as error:
        raise BadConfig(f"template_date is {date!r}; give a day such as 2026-11-29.") from error
    texts = {each: day.strftime(each) for each in sorted(formats)}
    return f"{{% macro strftime_now(format) %}}{{{{ {texts!r}[format] }}}}{{% endmacro %}}"


def check_template(tokenizer: Any) -> None:
    """Raises BadConfig if replies cannot be trained and sampled behind the template's generation prompt."""
    stop_token(tokenizer)
    roles = ("system", "user", "assistant")
    prompt, trained = (_split_template(tokenizer, tokenizer.chat_template, roles[:count]) for count in (2, 3))
    header = trained.between[2].removeprefix(prompt.between[2])
    if header != trained.between[2] and not special_tokens(tokenizer).isdisjoint(
        encode(tokenizer, [header], special=True)[0]
    ):
        raise BadConfig(
            f"its chat template writes {header!r} between the generation prompt and a reply, and a policy writes no "
            "special tokens; give it a template whose generation prompt ends where replies begin."
        )


def stop_token(tokenizer: Any) -> int:
    """Returns the token that ends a reply: the first that the chat template writes behind a reply.

    SFT teaches this token, and sampling stops at it only, even if the tokenizer's eos_token is another one.

    Raises:
        BadConfig: There is no chat template, or it writes no special token behind a reply.
    """
    return _find_stop_token(tokenizer, tokenizer.chat_template)


@lru_cache(maxsize=8)  # each call would list all added tokens
def _find_stop_token(tokenizer: Any, template: str | None) -> int:
    if not template:
        raise BadConfig(
            "its tokenizer has no chat template, so the format of prompts and replies is unknown. "
            "Set tokenizer.chat_template and save the tokenizer again."
        )
    roles = ("system", "user", "assistant", "user")
    within = _split_template(tokenizer, template, roles).between[3]
    at_the_end = _split_template(tokenizer, template, roles[:3]).between[3]
    first, last = (next(iter(ids), None) for ids in encode(tokenizer, [within, at_the_end], special=True))
    if first is None or first != last or first not in special_tokens(tokenizer):
        raise BadConfig(
            f"behind a reply its chat template writes {within!r} before another message and {at_the_end!r} at the end; "
            "both must begin with the same special token, or nothing can end a reply."
        )
    return first


def prompts_grow(tokenizer: Any) -> bool:
    """Returns whether the template writes what stands before past replies as in its generation prompt.

    If so, the prompt of a step and its reply begin the prompt of the next step.
    """
    roles = ("system", *("user", "assistant") * 2, "user")
    texts = [_split_template(tokenizer, tokenizer.chat_template, roles[:count]).between for count in (2, 4, 6)]
    return all(later[: len(prompt)] == prompt for prompt, later in pairwise(texts))


def template_remarks(tokenizer: Any, date: str | None = None) -> list[str]:
    """Returns sentences on what a user should know of the tokenizer's template.

    Args:
        date: The date that it writes, if it asks for one.
    """
    template = tokenizer.chat_template
    generation_prompt = _split_template(tokenizer, template, ("system", "user")).between[2]
    remarks = []
    if not _takes_system(tokenizer, template):
        remarks.append("it refuses a system message: the instructions stand at the head of the first user message")
    if opened := _OPENED.search(generation_prompt):
        remarks.append(
            f"its generation prompt opens {opened[0].strip()}: replies stand directly behind that and do not close it "
            "(template_variables may do so, docs/models.md)"
        )
    if writes_date(template):
        remarks.append(f"it writes the date, {date or 'that of each day'}")
    return [f"chat template: {remark}" for remark in remarks]


def chat_messages(tokenizer: Any, messages: Sequence[Message]) -> list[Message]:
    """Returns messages as the tokenizer's template accepts them: without a system message if it refuses one."""
    return list(messages) if _takes_system(tokenizer, tokenizer.chat_template) else merge_system(messages)


def render(tokenizer: Any, messages: Sequence[Message], *, generation_prompt: bool) -> str:
    """Renders the tokenizer's template.

    Raises:
        BadConfig: The template refuses the messages, or takes too long.
    """
    return _render(tokenizer, tokenizer.chat_template, messages, generation_prompt=generation_prompt)


def _render(tokenizer: Any, template: str | None, messages: Sequence[Message], *, generation_prompt: bool) -> str:
    from jinja2 import TemplateError  # noqa: PLC0415 - comes with torch, without which `rank` runs

    with time_limit(TEMPLATE_LIMIT_S, "this model's chat template"):
        try:
            rendered: str = tokenizer.apply_chat_template(
                [*messages], chat_template=template, tokenize=False, add_generation_prompt=generation_prompt
            )
        except BadConfig:
            raise
        except (TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            reason = first_line(error).rstrip(".")
            roles = ", ".join(message["role"] for message in messages[:4])
            raise _Refused(f"this model's chat template refuses the messages {roles}, …: {reason}.") from error
    return rendered


@lru_cache(maxsize=256)
def _takes_system(tokenizer: Any, template: str | None) -> bool:
    """Returns whether the template writes a system message."""
    messages = [Message(role=role, content=_mark(index)) for index, role in enumerate(("system", "user"))]
    try:
        return _mark(0) in _render(tokenizer, template, messages, generation_prompt=True)
    except _Refused:
        return False


def _mark(index: int) -> str:
    return f"\u2063{index}\u2063"


class _TemplateText(NamedTuple):
    """As TemplateTokens, with the texts before each message and after the last one."""

    between: list[str]
    keeps_blanks: list[tuple[bool, bool]]


@lru_cache(maxsize=1024)
def _split_template(
    tokenizer: Any, template: str | None, roles: tuple[str, ...], *, has_system: bool = True
) -> _TemplateText:
    """Renders the template and splits it at the messages.

    For a prompt (last role user) the last text ends with the generation prompt.

    Raises:
        BadConfig: The template drops or reorders messages, or refuses them.
    """
    marks = [_mark(index) if index or has_system else "" for index in range(len(roles))]
    contents = [f"{_BEFORE}{mark}{_AFTER}" if mark else "" for mark in marks]
    messages = [Message(role=role, content=content) for role, content in zip(roles, contents, strict=True)]
    if not _takes_system(tokenizer, template):
        messages = merge_system(messages)
    rendered = _render(tokenizer, template, messages, generation_prompt=roles[-1] == "user")
    between = []
    for mark in marks:
        before, separator, rendered = rendered.partition(mark) if mark else ("", "without system", rendered)
        if not separator:
            raise BadConfig("this model's chat template drops or reorders messages; give one that does not.")
        between.append(before)
    between.append(rendered)
    keeps_blanks = [(before.endswith(_BEFORE), after.startswith(_AFTER)) for before, after in pairwise(between)]
    return _TemplateText([text.removesuffix(_BEFORE).removeprefix(_AFTER) for text in between], keeps_blanks)


@lru_cache(maxsize=1024)
def _tokenize_template(
    tokenizer: Any, template: str | None, roles: tuple[str, ...], *, has_system: bool
) -> TemplateTokens:
    between, keeps_blanks = _split_template(tokenizer, template, roles, has_system=has_system)
    names = tokenizer.convert_ids_to_tokens(sorted(special_tokens(tokenizer)))
    beginnings = []
    for role, text in zip(roles, between, strict=False):
        end = max((text.rfind(name) + len(name) for name in names if name in text), default=0)
        beginnings.append("" if role == "assistant" else text[end:])
    heads = [text.removesuffix(beginning) for text, beginning in zip(between, [*beginnings, ""], strict=True)]
    return TemplateTokens(encode(tokenizer, heads, special=True), beginnings, keeps_blanks)


def template_tokens(tokenizer: Any, messages: Sequence[Message]) -> TemplateTokens:
    """Returns what the tokenizer's template writes around messages; behind a user's message the generation prompt."""
    roles = tuple(message["role"] for message in messages)
    return _tokenize_template(tokenizer, tokenizer.chat_template, roles, has_system=bool(messages[0]["content"]))
