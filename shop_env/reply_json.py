"""The JSON object in a reply's text: read whole or found among other words, and where one of its strings stands.

    text ─► whole_object ───► fields        the object and nothing else: the extraction `strict`
         └► object_inside ──► fields        the one object in it: the extraction `lenient` (both in replies.py)

By Python's own decoder, made strict: a repeated key, NaN and half a surrogate pair are refused.
"""

import json
import re
import reprlib
from typing import Any

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
    """The one JSON object among other text, and where it begins; what `lenient` reads (see the head of replies.py).

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
