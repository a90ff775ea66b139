"""Finds from an address which of the texts typed before it were submitted, and the content of a masked text.

    a text, then another address                       submitted, by the return key or a script
    a text, a press of the form's button, then an address with the text    submitted; the press is part of it

A masked text has as many `*` as the text had characters. Its content is the parameter with the name of its field, if
that is new or as long, otherwise the only new value that is as long. Passwords are never searched for.
"""

from urllib.parse import parse_qsl, urlsplit

from replay_sessions.elements import normal_text
from replay_sessions.importers.rrweb.timeline import Act, Address

_SURE = 3  # characters; shorter values may have the same length by chance


def learn_from(address: Address, acts: list[Act]) -> None:
    """Uses an address to complete the acts in its window since the previous address."""
    new = parse_parameters(address.href)
    old = parse_parameters(address.before)
    for act in acts:
        if act.kind == "type_and_submit" and act.is_masked and not act.is_secret:
            text = _unmask(act, new, [pair for pair in new if pair not in old])
            if text is not None:
                act.text, act.is_masked = text, False
    if not acts:
        return
    last = acts[-1]
    if last.kind == "type_and_submit":
        last.submitted = True
    elif last.is_submit and not last.buys and len(acts) > 1 and _is_sent(acts[-2], last, new):
        acts[-2].submitted = last.is_part = True


def parse_parameters(address: str) -> list[tuple[str, str]]:
    """Returns the parameters of an address as pairs of name and value.

    >>> parse_parameters("https://shop.example/search?q=red+kettle&page=2")
    [('q', 'red kettle'), ('page', '2')]
    """
    try:
        return parse_qsl(urlsplit(address).query)
    except ValueError:  # not an address, or too many parameters
        return []


def _is_sent(typed: Act, press: Act, values: list[tuple[str, str]]) -> bool:
    is_one_form = typed.kind == "type_and_submit" and typed.form_id is not None and typed.form_id == press.form_id
    sent = {normal_text(value) for _, value in values}
    return is_one_form and not typed.is_masked and normal_text(typed.text) in sent


def _unmask(act: Act, values: list[tuple[str, str]], new: list[tuple[str, str]]) -> str | None:
    values_of_name = [
        value
        for name, value in values
        if act.field_name and name == act.field_name and (_length(value) == len(act.text) or (name, value) in new)
    ]
    if values_of_name:
        return values_of_name[-1]
    as_long = [value for _, value in new if _length(value) == len(act.text) >= _SURE]
    return as_long[0] if len(as_long) == 1 else None


def _length(text: str) -> int:
    """Returns the length of a text as a browser counts it, in UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
