"""A session without private data: pages that are simplified already, actions, rationales, addresses, goal, persona.

Raw pages lose it while they are simplified, which leaves what the shopper said and typed (`without_private_words`). Logs
that hold simplified pages go through `without_private_data`. What was found on any page of a
session is taken out of all of it. The names of elements are made of words that a page shows, so what was found there goes
from names too, and from the actions that mean them: `lists_of_anna` becomes `lists_of_name` on the page and in the click.
Two names that become one stay one; ids and times stay as they are.
"""

import html
import re
from collections.abc import Sequence

import msgspec

from replay_sessions.schema import Action, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.simplify.names import slug
from replay_sessions.simplify.private_data import (
    Removal,
    remove_from_text,
    remove_from_url,
    remove_private_data,
    remove_repeated,
)

__all__ = ["without_private_data", "without_private_words"]

_TAG = re.compile(r"(<[^<>]*>)")
_NAME = re.compile(r'(\sname=")([^"]*)(")')


def without_private_data(session: Session) -> Session:
    """The session with `[kind]` in the place of whatever looks private in it."""
    cleaned = [_page_without(step.page) for step in session.steps]
    removed = tuple(dict.fromkeys(removal for _, found in cleaned for removal in found))
    steps = (_step(step, page, removed) for step, (page, _) in zip(session.steps, cleaned, strict=True))
    return without_private_words(msgspec.structs.replace(session, steps=tuple(steps)), removed)


def without_private_words(session: Session, removed: Sequence[Removal]) -> Session:
    """The session without what looks private in goal, persona, rationales, addresses of pages and what was typed.

    Args:
        removed: What was found private on its pages.
    """

    def cleaned(text: str) -> str:
        return remove_from_text(text, removed)

    persona = session.persona
    if persona is not None:
        traits = {name: cleaned(value) for name, value in persona.traits.items()}
        persona = msgspec.structs.replace(persona, text=cleaned(persona.text), traits=traits)
    steps = []
    for step in session.steps:
        action = step.action
        if isinstance(action, TypeAndSubmit):
            action = msgspec.structs.replace(action, text=cleaned(action.text))
        rationale, url = step.rationale and cleaned(step.rationale), step.url and remove_from_url(step.url, removed)
        steps.append(msgspec.structs.replace(step, action=action, rationale=rationale, url=url))
    goal = session.goal and cleaned(session.goal)
    return msgspec.structs.replace(session, steps=tuple(steps), goal=goal, persona=persona)


def _page_without(page: str) -> tuple[str, tuple[Removal, ...]]:
    pieces = [piece for piece in _TAG.split(page) if piece]
    changed, removed = remove_private_data(pieces)
    return "".join(changed.get(position, piece) for position, piece in enumerate(pieces)), removed


def _step(step: Step, page: str, removed: Sequence[Removal]) -> Step:
    pieces = [piece for piece in _TAG.split(page) if piece]
    changed = remove_repeated(pieces, removed)
    words = {slug(html.unescape(removal.text)): removal.kind for removal in removed if removal.is_repeated}
    words.pop("", None)
    written = "".join(
        _NAME.sub(lambda match: match[1] + _name_without(match[2], words) + match[3], piece)
        if piece[0] == "<"
        else piece
        for piece in (changed.get(position, piece) for position, piece in enumerate(pieces))
    )
    return msgspec.structs.replace(step, page=written, action=_action(step.action, words, removed))


def _action(action: Action, words: dict[str, str], removed: Sequence[Removal]) -> Action:
    if isinstance(action, Terminate):
        return action
    name = remove_repeated([action.name], removed).get(0, action.name)
    return msgspec.structs.replace(action, name=_name_without(name, words))


def _name_without(name: str, words: dict[str, str]) -> str:
    """A name of an element without the words of what was removed."""
    for word, kind in words.items():
        if word in name:
            name = re.sub(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", kind, name)
    return name
