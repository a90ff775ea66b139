"""What a model writes: one JSON object with a rationale and an action, written and read here and nowhere else.

Stands between the agent and the reward (Shop-R1, section 3, "binary format reward", and appendix A):

    {"rationale": "I need a kettle.", "action": {"type": "click", "name": "search_button"}}

`parse_reply` never raises: a bad reply is data (MalformedReply) and earns nothing. Where the papers are silent:
white space around the object is allowed, any other text is not; the order of keys is free and unknown keys are ignored,
a repeated key makes the reply ambiguous and therefore malformed; `name` or `text` that is missing or null reads as "";
an action of unknown type is no action, so the reply is malformed; text that UTF-8 cannot carry (a lone surrogate) is
not JSON.

That is the extraction `strict`, what a trained model is held to. Models that were never trained on the format wrap the
object in other text; for them there is `lenient`, which decides zero-shot figures and therefore stands beside them:

    extraction   what is read
    strict       the object and nothing else
    strict_input the same, and the type `input`: what `strict` means on a store with typed texts that are not known to
                 be submitted (OPeRA; `extraction_of`). `type_and_submit` is read too: agents that choose among actions
                 do not know the store's word
    lenient      what strict_input reads; else the one JSON object in the reply, whatever stands before and behind it
                 (code fences, prose). What a model thinks aloud is no part of its reply: `<think>…</think>`, and all
                 before a `</think>` that nothing opened. Two objects are ambiguous, so such a reply stays malformed, as
                 does thinking without an end.

A reply with a special token of its model, other than the one that ends it, begins with SPECIAL_MARK and is malformed.

JSON is read by Python's own decoder, made strict: a repeated key, NaN and half a surrogate pair are refused.
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
    Terminate,
    TypeAndSubmit,
    written_action,
)

SPECIAL_MARK = "\0"  # what decodes a reply writes it before one with special tokens; no text of a reply may hold it
_WHITE_SPACE = " \t\n\r"
_JSON_BEGINNINGS = (*'{["-0123456789', "true", "false", "null", "NaN", "Infinity")  # the last two are Python's own
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_MOST_BRACES = 100
_THOUGHT_END = "</think>"
_MARK = re.compile(r"\{|<think>|</think>")  # where an object may begin, and where thinking begins and ends


class Unreadable(Exception):
    """A reply that cannot be read: what is wrong as a code, and in words (`MalformedReply`)."""

    def __init__(self, problem: str, detail: str) -> None:
        super().__init__(problem, detail)


def whole_object(text: str) -> dict[str, Any]:
    """The one JSON object that is the whole text, by Python's decoder made strict."""
    start = len(text) - len(text.lstrip(_WHITE_SPACE))
    if not text.startswith(_JSON_BEGINNINGS, start):  # prose, mostly: the decoder would be long in saying so
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
    """The one JSON object among other text, and where it begins; what `lenient` reads.

    From left to right: an object is taken whole, whatever its texts hold; a brace that begins none is passed over,
    with what was read behind it until that became clear.
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
                if passed_over > _MOST_BRACES:  # each error costs as much as the text is long
                    raise Unreadable("not_json", f"{passed_over} braces begin no JSON object") from error
            except ValueError as error:  # numbers that are not JSON or too long
                raise Unreadable("not_json", str(error)[:200]) from error
        elif mark.group() == _THOUGHT_END:  # nothing opened it
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
    """The JSON value that begins at `start`, and where it ends; ValueError where there is none."""
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
    """Where the raw text of a string lies that a valid object, from `start` on, has under `name` at its top level."""
    position = text.index("{", start) + 1
    while True:
        key = _STRING.search(text, position)
        assert key is not None  # the object is valid and has the key
        value = text.index(":", key.end()) + 1
        while text[value] in _WHITE_SPACE:
            value += 1
        end = _STRING.match(text, value)
        if json.loads(key.group()) == name:
            assert end is not None  # it is a string
            return end.span(1)
        position = end.end() if end else _DECODER.raw_decode(text, value)[1]


def short_repr(value: object) -> str:
    """A value as Python writes it, long ones shortened."""
    return _SHORT_REPR.repr(value)


_SHORT_REPR = reprlib.Repr()
_SHORT_REPR.maxstring = 80


Extraction = Literal["strict", "strict_input", "lenient"]


def extraction_of(store: object, extraction: Extraction) -> Extraction:
    """Returns the extraction to use on a store: `strict` follows the words of its log."""
    takes_input = getattr(store, "typing", "type_and_submit") != "type_and_submit"
    return "strict_input" if extraction == "strict" and takes_input else extraction


class Reply(msgspec.Struct, frozen=True, gc=False):
    """A readable reply; `text` is the whole of it, as written, and from `start` on stands its object."""

    rationale: str
    action: Action
    text: str = ""
    start: int = 0

    @property
    def rationale_span(self) -> tuple[int, int]:
        """Where the rationale's raw text (as written, escapes included) lies in `text`, in characters, without quotes.

        Self-certainty is averaged over the tokens in it.
        """
        return string_span(self.text, self.start, "rationale")


class MalformedReply(msgspec.Struct, frozen=True, gc=False):
    """A reply that cannot be read.

    Attributes:
        problem: What is wrong, as a stable code: not_text, not_json, extra_text, not_an_object, several_objects,
            bad_unicode, too_deep, duplicate_key, missing_rationale, bad_rationale, missing_action, bad_action,
            missing_type, unknown_type, special_token.
        detail: The same in words, with what was found.
    """

    problem: str
    detail: str


def action_json(action: Mapping[str, str]) -> str:
    """The JSON text of an action inside a reply."""
    return json.dumps(action, ensure_ascii=False)


def format_reply(rationale: str, action: Action | Mapping[str, str]) -> str:
    """The canonical reply: what a model is trained to write.

    >>> format_reply("I am done.", Terminate())
    '{"rationale": "I am done.", "action": {"type": "terminate"}}'
    """
    return reply_json(rationale, action_json(action if isinstance(action, Mapping) else written_action(action)))


def reply_json(rationale: str, action: str) -> str:
    """The canonical reply around an action that already is JSON text, as it stands in an observation's history."""
    return f'{{"rationale": {json.dumps(rationale, ensure_ascii=False)}, "action": {action}}}'


def parse_reply(text: str, extraction: Extraction = "strict") -> Reply | MalformedReply:
    """Reads a reply; never raises, whatever the text.

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
        if text.count('"') == _USUAL_QUOTES[type(usual.action)]:
            return Reply(usual.rationale, usual.action, text)
    return _parse_any(text, extraction)


# Nearly every reply of a trained model has exactly the usual keys and no escapes. Such a reply is decoded in a fraction
# of `_parse_any`'s time; it has as many quotes as the canonical one, since more mean keys that are repeated or unknown.
class _UsualReply(msgspec.Struct, gc=False):
    rationale: str
    action: Action


_USUAL_DECODER = msgspec.json.Decoder(_UsualReply)
_USUAL_QUOTES = {
    type(action): format_reply("", action).count('"')
    for action in (Click(name=""), TypeAndSubmit(name="", text=""), Terminate())
}


def _parse_any(text: str, extraction: Extraction) -> Reply | MalformedReply:
    if SPECIAL_MARK in text:
        return MalformedReply("special_token", "the model wrote a special token within its reply, or a NUL character")
    takes_input = extraction != "strict"
    try:
        return _read_reply(whole_object(text), text, takes_input=takes_input)
    except Unreadable as unreadable:
        if extraction != "lenient":
            return MalformedReply(*unreadable.args)
    try:
        fields, start = object_inside(text)
        return _read_reply(fields, text, start, takes_input=takes_input)
    except Unreadable as unreadable:
        return MalformedReply(*unreadable.args)


def _read_reply(fields: dict[str, Any], text: str, start: int = 0, *, takes_input: bool) -> Reply:
    if "rationale" not in fields:
        raise Unreadable("missing_rationale", f"the keys are {short_repr(list(fields))}; 'rationale' is not among them")
    rationale = fields["rationale"]
    if not isinstance(rationale, str):
        raise Unreadable("bad_rationale", f"the rationale must be a string, not {short_repr(rationale)}")
    if "action" not in fields:
        raise Unreadable("missing_action", f"the keys are {short_repr(list(fields))}; 'action' is not among them")
    return Reply(rationale, _read_action(fields["action"], takes_input=takes_input), text, start)


def _read_action(action: object, *, takes_input: bool) -> Action:
    if not isinstance(action, dict):
        raise Unreadable("bad_action", f"the action must be an object, not {short_repr(action)}")
    if "type" not in action:
        raise Unreadable("missing_type", f"the action's keys are {short_repr(list(action))}; 'type' is not among them")
    kind = action["type"]
    name, text = _read_text(action, "name"), _read_text(action, "text")
    if takes_input and kind == INPUT:
        return TypeAndSubmit(name=name, text=text, submitted=False)
    if kind not in ACTION_TYPES:
        raise Unreadable("unknown_type", f"{short_repr(kind)} is none of {', '.join(ACTION_TYPES)}")
    action_type: ActionType = kind
    match action_type:
        case "click":
            return Click(name=name)
        case "type_and_submit":
            return TypeAndSubmit(name=name, text=text)
        case "terminate":
            return Terminate()
        case _:
            assert_never(action_type)


def _read_text(action: dict[str, Any], key: str) -> str:
    value = action.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unreadable("bad_action", f"the action's {key} must be a string, not {short_repr(value)}")
    return value
