"""Formats and parses replies: a reply is one JSON object with a rationale and an action.

Stands between the agent and the reward (Shop-R1, section 3, "binary format reward", and appendix A):

    {"rationale": "I need a kettle.", "action": {"type": "click", "name": "search_button"}}

`parse_reply` never raises: it returns a MalformedReply, which earns nothing. The papers leave some rules open, and this
project decides them. White space around the object is allowed, other text is not. The rationale stands before the
action, because behind it it could not inform it; unknown keys are ignored. A repeated key makes a reply ambiguous and
so malformed. A `name` or `text` that is missing or null reads as "". An unknown type of action makes the reply
malformed. Text that UTF-8 cannot encode (a lone surrogate) is not JSON.

These are the rules of the extraction `strict`, for trained models. Models that were never trained on the format wrap
the object in other text. For them use `lenient`; it changes zero-shot metrics, so results name it:

    extraction   accepted replies
    strict       the object and nothing else
    strict_input the same, and the type `input`: the meaning of `strict` on a store with typed texts that are not known
                 to be submitted (OPeRA; `extraction_of`). `type_and_submit` is accepted too, because agents that choose
                 among actions do not know the store's type
    lenient      all that strict_input accepts, and the action first; else the one JSON object in the reply, with any
                 text around it (code fences, prose). Thinking is no part of the reply: `<think>…</think>`, and
                 everything before a `</think>` without a `<think>`. A reply with two objects is ambiguous, so it stays
                 malformed, as does one with a `<think>` that never ends
    strict_scroll, lenient_scroll  as strict_input and lenient, and the type `scroll`: the meaning of `strict` and of
                 `lenient` on a store with scrolls (OPeRA's full version)

A reply with a special token of its model, other than the end token, begins with SPECIAL_MARK and is malformed.

Python's own decoder reads the JSON and is made strict: it refuses a repeated key, NaN and half a surrogate pair.
"""

import json
import re
import reprlib
from collections.abc import Mapping
from typing import Any, Literal, assert_never

import msgspec

from replay_sessions.schema import (
    ACTION_TYPES,
    INPUT,
    Action,
    ActionType,
    Click,
    Scroll,
    Terminate,
    TypeAndSubmit,
    written_action,
)

SPECIAL_MARK = "\0"  # the decoder of tokens puts it before a reply with special tokens; no valid reply contains it
_WHITE_SPACE = " \t\n\r"
_JSON_BEGINNINGS = (*'{["-0123456789', "true", "false", "null", "NaN", "Infinity")  # the last two are Python's own
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_MOST_BRACES = 100
_THOUGHT_END = "</think>"
_MARK = re.compile(r"\{|<think>|</think>")  # where an object may begin, and where thinking begins and ends


class Unreadable(Exception):
    """Raised for a malformed reply, with the `problem` and `detail` of its MalformedReply."""

    def __init__(self, problem: str, detail: str) -> None:
        super().__init__(problem, detail)


def whole_object(text: str) -> dict[str, Any]:
    """Decodes a text that is one JSON object and nothing else.

    Raises:
        Unreadable: The text is something else.
    """
    start = len(text) - len(text.lstrip(_WHITE_SPACE))
    if not text.startswith(_JSON_BEGINNINGS, start):  # mostly prose, which the decoder rejects more slowly
        raise Unreadable(*_why_not_json(text[start:], "it begins as no JSON value does"))
    try:
        value, end = _decode_value(text, start)
    except ValueError as error:
        raise Unreadable(*_why_not_json(text[start:], str(error)[:200])) from error
    _check_unicode(text, value)
    if text[end:].strip(_WHITE_SPACE):
        raise Unreadable("extra_text", f"after the JSON object comes {short_repr(text[end:].strip())}")
    if not isinstance(value, dict):
        raise Unreadable("not_an_object", f"the reply must be a JSON object, not {short_repr(value)}")
    return value


def object_inside(text: str) -> tuple[dict[str, Any], int]:
    """Finds the one JSON object among other text, as `lenient` reads it, and its offset.

    Scans from left to right. An object is read to its end, whatever its texts contain. A brace that begins no object is
    skipped, together with the text up to the decoder's error.

    Raises:
        Unreadable: The text has no object or several, or a `<think>` that never ends.
    """
    objects: list[tuple[dict[str, Any], int]] = []
    position = passed_over = 0
    while mark := _MARK.search(text, position):
        position = mark.end()
        if mark.group() == "{":
            try:
                value, position = _decode_value(text, mark.start())
                objects.append((value, mark.start()))
            except json.JSONDecodeError as error:
                position, passed_over = max(position, error.pos), passed_over + 1
                if passed_over > _MOST_BRACES:  # each error takes time in proportion to the text
                    raise Unreadable("not_json", f"{passed_over} braces begin no JSON object") from error
            except ValueError as error:  # numbers that are not JSON or too long
                raise Unreadable("not_json", str(error)[:200]) from error
        elif mark.group() == _THOUGHT_END:  # without a <think>
            objects.clear()
        elif (end := text.find(_THOUGHT_END, position)) >= 0:
            position = end + len(_THOUGHT_END)
        else:
            raise Unreadable("not_json", "the reply never stops thinking: <think> without </think>")
    if not objects:
        raise Unreadable("not_json", "there is no JSON object in the reply")
    if len(objects) > 1:
        raise Unreadable("several_objects", f"there are {len(objects)} JSON objects in the reply, so it is ambiguous")
    _check_unicode(text, objects[0][0])
    return objects[0]


def _decode_value(text: str, start: int) -> tuple[Any, int]:
    """Decodes the JSON value that begins at `start`; returns it and its end.

    Raises:
        ValueError: No JSON value begins there.
        Unreadable: The value is nested too deeply.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError as error:
        raise Unreadable("too_deep", "the reply is nested too deeply to be read") from error


def _check_unicode(text: str, value: object) -> None:
    try:
        text.encode()
        if "\\u" in text:  # escapes can bring in lone surrogates
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise Unreadable("bad_unicode", "the reply holds half a surrogate pair, which is no text") from error
    except RecursionError as error:
        raise Unreadable("too_deep", "the reply is nested too deeply to be read") from error


def _why_not_json(text: str, reason: str) -> tuple[str, str]:
    if not text:
        return "not_json", "the reply is empty"
    if text[0] != "{" and "{" in text:
        return "extra_text", f"before the JSON object comes {short_repr(text[: text.index('{')])}"
    return "not_json", reason


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Unreadable("duplicate_key", "a key occurs twice, so the reply says two things at once")
    return fields


def _no_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_no_constant)


def string_span(text: str, start: int, name: str) -> tuple[int, int]:
    """Returns the span of the raw text of the string under `name` at the top level of a valid object.

    Args:
        start: Where the object begins, or white space before it.
    """
    position = text.index("{", start) + 1
    while True:
        key = _STRING.search(text, position)
        assert key is not None  # the object is valid and has the key
        value = text.index(":", key.end()) + 1
        while text[value] in _WHITE_SPACE:
            value += 1
        end = _STRING.match(text, value)
        if json.loads(key.group()) == name:
            assert end is not None  # the value under `name` is a string
            return end.span(1)
        position = end.end() if end else _DECODER.raw_decode(text, value)[1]


def short_repr(value: object) -> str:
    """Returns the repr of a value, shortened if it is long."""
    return _SHORT_REPR.repr(value)


_SHORT_REPR = reprlib.Repr()
_SHORT_REPR.maxstring = 80


Extraction = Literal["strict", "strict_input", "strict_scroll", "lenient", "lenient_scroll"]
_WITH_SCROLL: tuple[Extraction, ...] = ("strict_scroll", "lenient_scroll")
_LENIENT: tuple[Extraction, ...] = ("lenient", "lenient_scroll")


def extraction_of(store: object, extraction: Extraction) -> Extraction:
    """Returns the extraction to use on a store: with the types `input` and `scroll` if its log has them."""
    if getattr(store, "scrolls", False):
        return "lenient_scroll" if extraction in _LENIENT else "strict_scroll"
    takes_input = getattr(store, "typing", "type_and_submit") != "type_and_submit"
    return "strict_input" if extraction == "strict" and takes_input else extraction


def needed_extraction(logged: Action) -> Extraction:
    """Returns the strict extraction that reads the reply with this action."""
    if isinstance(logged, Scroll):
        return "strict_scroll"
    return "strict_input" if isinstance(logged, TypeAndSubmit) and not logged.submitted else "strict"


class Reply(msgspec.Struct, frozen=True, gc=False):
    """A readable reply.

    Attributes:
        text: The complete reply, as written.
        start: The offset in `text` at which the JSON object begins, or white space before it.
    """

    rationale: str
    action: Action
    text: str = ""
    start: int = 0

    @property
    def has_rationale(self) -> bool:
        """Whether the rationale has more than blanks."""
        return bool(self.rationale.strip())

    @property
    def rationale_span(self) -> tuple[int, int]:
        """The span in `text` of the rationale's raw text (as written, with escapes, without quotes), in characters.

        Self-certainty is averaged over the tokens in it.
        """
        return string_span(self.text, self.start, "rationale")


class MalformedReply(msgspec.Struct, frozen=True, gc=False):
    """A reply that cannot be read.

    Attributes:
        problem: What is wrong, as a stable code: not_text, not_json, extra_text, not_an_object, several_objects,
            bad_unicode, too_deep, duplicate_key, missing_rationale, bad_rationale, missing_action, action_first,
            bad_action, missing_type, unknown_type, special_token.
        detail: The problem in words, with the text that caused it.
    """

    problem: str
    detail: str


def action_json(action: Mapping[str, str]) -> str:
    """Formats an action as JSON text, as inside a reply."""
    return json.dumps(action, ensure_ascii=False)


def format_reply(rationale: str, action: Action | Mapping[str, str]) -> str:
    """Formats the canonical reply, which models are trained to write.

    >>> format_reply("I am done.", Terminate())
    '{"rationale": "I am done.", "action": {"type": "terminate"}}'
    """
    return reply_json(rationale, action_json(action if isinstance(action, Mapping) else written_action(action)))


def reply_json(rationale: str, action: str) -> str:
    """Formats the canonical reply from an action that already is JSON text, as in an observation's history."""
    return f'{{"rationale": {json.dumps(rationale, ensure_ascii=False)}, "action": {action}}}'


def parse_reply(text: str, extraction: Extraction = "strict") -> Reply | MalformedReply:
    """Parses a reply; returns a MalformedReply instead of raising, whatever the text.

    >>> parse_reply('{"rationale": "I am done.", "action": {"type": "terminate"}}').rationale
    'I am done.'
    >>> parse_reply("I would click on the cart.").problem
    'not_json'
    >>> parse_reply('Sure: {"rationale": "I am done.", "action": {"type": "terminate"}}', "lenient").action
    Terminate()
    """
    if not isinstance(text, str):
        return MalformedReply("not_text", f"a reply is a str, not {type(text).__name__}")
    if "\\" not in text:
        try:
            usual = _USUAL_DECODER.decode(text)
        except (ValueError, RecursionError):  # msgspec's errors, SPECIAL_MARK's among them, are ValueErrors
            return _parse_any(text, extraction)
        is_ordered = text.startswith('"rationale"', text.index('"'))
        if is_ordered and text.count('"') == _USUAL_QUOTES.get(type(usual.action)):
            return Reply(usual.rationale, usual.action, text)
    return _parse_any(text, extraction)


# Nearly every reply of a trained model has exactly the usual keys, in order, and no escapes. msgspec decodes it in a
# fraction of `_parse_any`'s time. Such a reply has as many quotes as the canonical one; more mean repeated or unknown
# keys. Scrolls are not usual, because only some stores have them.
class _UsualReply(msgspec.Struct, gc=False):
    rationale: str
    action: Action


_USUAL_DECODER = msgspec.json.Decoder(_UsualReply)
_USUAL_QUOTES: dict[type[Action], int] = {
    type(action): format_reply("", action).count('"')
    for action in (Click(name=""), TypeAndSubmit(name="", text=""), Terminate())
}


def _parse_any(text: str, extraction: Extraction) -> Reply | MalformedReply:
    if SPECIAL_MARK in text:
        return MalformedReply("special_token", "the model wrote a special token within its reply, or a NUL character")
    try:
        return _read_reply(whole_object(text), text, 0, extraction)
    except Unreadable as unreadable:
        if extraction not in _LENIENT:
            return MalformedReply(*unreadable.args)
    try:
        fields, start = object_inside(text)
        return _read_reply(fields, text, start, extraction)
    except Unreadable as unreadable:
        return MalformedReply(*unreadable.args)


def _read_reply(fields: dict[str, Any], text: str, start: int, extraction: Extraction) -> Reply:
    if "rationale" not in fields:
        raise Unreadable("missing_rationale", f"the keys are {short_repr(list(fields))}; 'rationale' is not among them")
    rationale = fields["rationale"]
    if not isinstance(rationale, str):
        raise Unreadable("bad_rationale", f"the rationale must be a string, not {short_repr(rationale)}")
    if "action" not in fields:
        raise Unreadable("missing_action", f"the keys are {short_repr(list(fields))}; 'action' is not among them")
    if extraction not in _LENIENT and next(key for key in fields if key in ("rationale", "action")) == "action":
        raise Unreadable("action_first", "the action stands before the rationale, which must come first")
    return Reply(rationale, _read_action(fields["action"], extraction), text, start)


def _read_action(action: object, extraction: Extraction) -> Action:
    if not isinstance(action, dict):
        raise Unreadable("bad_action", f"the action must be an object, not {short_repr(action)}")
    if "type" not in action:
        raise Unreadable("missing_type", f"the action's keys are {short_repr(list(action))}; 'type' is not among them")
    kind = action["type"]
    name, text = _read_text(action, "name"), _read_text(action, "text")
    if kind == INPUT and extraction != "strict":
        return TypeAndSubmit(name=name, text=text, submitted=False)
    known = [each for each in ACTION_TYPES if each != "scroll" or extraction in _WITH_SCROLL]
    if kind not in known:
        raise Unreadable("unknown_type", f"{short_repr(kind)} is none of {', '.join(known)}")
    action_type: ActionType = kind
    match action_type:
        case "click":
            return Click(name=name)
        case "type_and_submit":
            return TypeAndSubmit(name=name, text=text)
        case "terminate":
            return Terminate()
        case "scroll":
            return Scroll()
        case _:
            assert_never(action_type)


def _read_text(action: dict[str, Any], key: str) -> str:
    value = action.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unreadable("bad_action", f"the action's {key} must be a string, not {short_repr(value)}")
    return value
