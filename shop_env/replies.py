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
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit, reply_action
from shop_env.reply_json import Unreadable, object_inside, short_repr, string_span, whole_object

Extraction = Literal["strict", "lenient"]


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
            missing_type, unknown_type.
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


def _parse_any(text: str, extraction: Extraction) -> Reply | MalformedReply:
    try:
        return _read_reply(whole_object(text), text)
    except Unreadable as unreadable:
        if extraction == "strict":
            return MalformedReply(*unreadable.args)
    try:
        fields, start = object_inside(text)
        return _read_reply(fields, text, start, {"input": "type_and_submit"})
    except Unreadable as unreadable:
        return MalformedReply(*unreadable.args)


def _read_reply(
    fields: dict[str, Any], text: str, start: int = 0, other_types: Mapping[str, str] = MappingProxyType({})
) -> Reply:
    if "rationale" not in fields:
        raise Unreadable("missing_rationale", f"the keys are {short_repr(list(fields))}; 'rationale' is not among them")
    rationale = fields["rationale"]
    if not isinstance(rationale, str):
        raise Unreadable("bad_rationale", f"the rationale must be a string, not {short_repr(rationale)}")
    if "action" not in fields:
        raise Unreadable("missing_action", f"the keys are {short_repr(list(fields))}; 'action' is not among them")
    return Reply(rationale, _read_action(fields["action"], other_types), text, start)


def _read_action(action: object, other_types: Mapping[str, str]) -> Action:
    if not isinstance(action, dict):
        raise Unreadable("bad_action", f"the action must be an object, not {short_repr(action)}")
    if "type" not in action:
        raise Unreadable("missing_type", f"the action's keys are {short_repr(list(action))}; 'type' is not among them")
    kind = action["type"]
    if isinstance(kind, str):
        kind = other_types.get(kind, kind)
    name, text = _read_text(action, "name"), _read_text(action, "text")
    if kind == "click":
        return Click(name=name)
    if kind == "type_and_submit":
        return TypeAndSubmit(name=name, text=text)
    if kind == "terminate":
        return Terminate()
    raise Unreadable("unknown_type", f"{short_repr(kind)} is not click, type_and_submit or terminate")


def _read_text(action: dict[str, Any], key: str) -> str:
    value = action.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unreadable("bad_action", f"the action's {key} must be a string, not {short_repr(value)}")
    return value
