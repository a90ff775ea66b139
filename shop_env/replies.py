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
    lenient      what strict reads; else the one JSON object in the reply, whatever stands before and behind it (code
                 fences, prose). What a model thinks aloud is no part of its reply: `<think>…</think>`, and all before a
                 `</think>` that nothing opened. OPeRA's type `input` is `type_and_submit`. Two objects are ambiguous,
                 so such a reply stays malformed, as does thinking without an end.
"""

import json
import re
import reprlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

import msgspec

from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit, reply_action

__all__ = [
    "Extraction",
    "MalformedReply",
    "Reply",
    "action_json",
    "check_extraction",
    "format_reply",
    "parse_reply",
    "reply_json",
]

Extraction = Literal["strict", "lenient"]

_WHITE_SPACE = " \t\n\r"
_JSON_BEGINNINGS = (*'{["-0123456789', "true", "false", "null", "NaN", "Infinity")  # the last two are Python's own
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_MOST_BRACES = 100
_THOUGHT_END = "</think>"
_MARK = re.compile(r"\{|<think>|</think>")  # where an object may begin, and where thinking begins and ends


def check_extraction(extraction: str) -> None:
    """Refuses what is no extraction."""
    if extraction not in get_args(Extraction):
        raise BadConfig(f"extraction is {extraction!r}; it must be one of {', '.join(get_args(Extraction))}.")


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
        return _rationale_span(self.text, self.start)


class MalformedReply(msgspec.Struct, frozen=True, gc=False):
    """A reply that cannot be read.

    Attributes:
        problem: What is wrong, as a stable code: not_text, not_json, extra_text, not_an_object, several_objects,
            bad_unicode, too_deep, duplicate_key, missing_rationale, bad_rationale, missing_action, bad_action,
            missing_type, unknown_type.
        detail: The same in words, with what was found.
    """

    problem: str
    detail: str


class _Unreadable(Exception):  # stays inside this module
    def __init__(self, problem: str, detail: str) -> None:
        super().__init__(problem, detail)
        self.reply = MalformedReply(problem, detail)


def action_json(action: Mapping[str, str]) -> str:
    """The JSON text of an action inside a reply."""
    return json.dumps(action, ensure_ascii=False)


def format_reply(rationale: str, action: Action | Mapping[str, str]) -> str:
    """The canonical reply: what a model is trained to write.

    >>> format_reply("I am done.", Terminate())
    '{"rationale": "I am done.", "action": {"type": "terminate"}}'
    """
    return reply_json(rationale, action_json(action if isinstance(action, Mapping) else reply_action(action)))


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
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors; _parse_any says what is wrong
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


def _typed_action(kind: str, name: str, text: str) -> Action:
    if kind == "click":
        return Click(name=name)
    if kind == "type_and_submit":
        return TypeAndSubmit(name=name, text=text)
    if kind == "terminate":
        return Terminate()
    raise _Unreadable("unknown_type", f"{_shown(kind)} is not click, type_and_submit or terminate")


def _parse_any(text: str, extraction: Extraction) -> Reply | MalformedReply:
    try:
        return _read_reply(_decode_object(text), text)
    except _Unreadable as unreadable:
        if extraction == "strict":
            return unreadable.reply
    try:
        fields, start = _find_object(text)
        return _read_reply(fields, text, start, {"input": "type_and_submit"})
    except _Unreadable as unreadable:
        return unreadable.reply


def _read_reply(
    fields: dict[str, Any], text: str, start: int = 0, other_types: Mapping[str, str] = MappingProxyType({})
) -> Reply:
    if "rationale" not in fields:
        raise _Unreadable("missing_rationale", f"the keys are {_shown(list(fields))}; 'rationale' is not among them")
    rationale = fields["rationale"]
    if not isinstance(rationale, str):
        raise _Unreadable("bad_rationale", f"the rationale must be a string, not {_shown(rationale)}")
    if "action" not in fields:
        raise _Unreadable("missing_action", f"the keys are {_shown(list(fields))}; 'action' is not among them")
    return Reply(rationale, _read_action(fields["action"], other_types), text, start)


def _read_action(action: object, other_types: Mapping[str, str]) -> Action:
    if not isinstance(action, dict):
        raise _Unreadable("bad_action", f"the action must be an object, not {_shown(action)}")
    if "type" not in action:
        raise _Unreadable("missing_type", f"the action's keys are {_shown(list(action))}; 'type' is not among them")
    kind = action["type"]
    if isinstance(kind, str):
        kind = other_types.get(kind, kind)
    return _typed_action(kind, _read_text(action, "name"), _read_text(action, "text"))


def _read_text(action: dict[str, Any], key: str) -> str:
    value = action.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Unreadable("bad_action", f"the action's {key} must be a string, not {_shown(value)}")
    return value


def _decode_object(text: str) -> dict[str, Any]:
    """The one JSON object that is the whole text, by Python's decoder made strict."""
    start = len(text) - len(text.lstrip(_WHITE_SPACE))
    if not text.startswith(_JSON_BEGINNINGS, start):  # prose, mostly: the decoder would be long in saying so
        raise _Unreadable(*_why_not_json(text[start:], "it begins as no JSON value does"))
    try:
        value, end = _decode_value(text, start)
    except ValueError as error:
        raise _Unreadable(*_why_not_json(text[start:], str(error)[:200])) from error
    _check_unicode(text, value)
    if text[end:].strip(_WHITE_SPACE):
        raise _Unreadable("extra_text", f"after the JSON object comes {_shown(text[end:].strip())}")
    if not isinstance(value, dict):
        raise _Unreadable("not_an_object", f"the reply must be a JSON object, not {_shown(value)}")
    return value


def _find_object(text: str) -> tuple[dict[str, Any], int]:
    """The one JSON object among other text, and where it begins; what `lenient` reads (see the head of this module).

    From left to right: an object is taken whole, whatever its texts hold; a brace that begins none is passed over,
    with what was read behind it until that became clear.
    """
    found: list[tuple[dict[str, Any], int]] = []
    place = passed_over = 0
    while mark := _MARK.search(text, place):
        place = mark.end()
        if mark.group() == "{":
            try:
                value, place = _decode_value(text, mark.start())
                found.append((value, mark.start()))
            except json.JSONDecodeError as error:
                place, passed_over = max(place, error.pos), passed_over + 1
                if passed_over > _MOST_BRACES:  # each error costs as much as the text is long
                    raise _Unreadable("not_json", f"{passed_over} braces begin no JSON object") from error
            except ValueError as error:  # numbers that are not JSON or too long
                raise _Unreadable("not_json", str(error)[:200]) from error
        elif mark.group() == _THOUGHT_END:  # nothing opened it
            found.clear()
        elif (end := text.find(_THOUGHT_END, place)) >= 0:
            place = end + len(_THOUGHT_END)
        else:
            raise _Unreadable("not_json", "the reply never stops thinking: <think> without </think>")
    if not found:
        raise _Unreadable("not_json", "there is no JSON object in the reply")
    if len(found) > 1:
        raise _Unreadable("several_objects", f"there are {len(found)} JSON objects in the reply, so it is ambiguous")
    _check_unicode(text, found[0][0])
    return found[0]


def _decode_value(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that begins at `start`, and where it ends; ValueError where there is none."""
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError as error:
        raise _Unreadable("too_deep", "the reply is nested too deeply to be read") from error


def _check_unicode(text: str, value: object) -> None:
    try:
        text.encode()
        if "\\u" in text:  # escapes can bring in lone surrogates
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise _Unreadable("bad_unicode", "the reply holds half a surrogate pair, which is no text") from error
    except RecursionError as error:
        raise _Unreadable("too_deep", "the reply is nested too deeply to be read") from error


def _why_not_json(text: str, reason: str) -> tuple[str, str]:
    if not text:
        return "not_json", "the reply is empty"
    if text[0] != "{" and "{" in text:
        return "extra_text", f"before the JSON object comes {_shown(text[: text.index('{')])}"
    return "not_json", reason


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _Unreadable("duplicate_key", "a key occurs twice, so the reply says two things at once")
    return fields


def _no_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_no_constant)


def _rationale_span(text: str, start: int) -> tuple[int, int]:
    """Walks the top level of a valid JSON object to the string that is the value of `rationale`."""
    position = text.index("{", start) + 1
    while True:
        key = _STRING.search(text, position)
        assert key is not None  # the object is valid and has the key
        value = text.index(":", key.end()) + 1
        while text[value] in _WHITE_SPACE:
            value += 1
        end = _STRING.match(text, value)
        if json.loads(key.group()) == "rationale":
            assert end is not None  # the rationale is a string
            return end.span(1)
        position = end.end() if end else _DECODER.raw_decode(text, value)[1]


def _shown(value: object) -> str:
    return _SHORT_REPR.repr(value)


_SHORT_REPR = reprlib.Repr()
_SHORT_REPR.maxstring = 80
