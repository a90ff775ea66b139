"""A session without private data: pages that are simplified already, actions, rationales, addresses, goal, persona.

Raw pages lose it while they are simplified, which leaves what the shopper said and typed (`without_private_words`).
Logs that hold simplified pages go through `without_private_data`. What was found on any page of a session is taken out
of all of it, and out of the names of elements, which are made of words that pages show, and the actions that mean them:
`lists_of_anna` becomes `lists_of_name` on the page and in the click. Two names that become one stay one; ids and times
stay as they are.
"""

import html
import re
from collections.abc import Sequence

import msgspec

from replay_sessions.private_data import (
    Removal,
    html_pieces,
    remove_from_text,
    remove_from_url,
    remove_private_data,
    remove_repeated,
)
from replay_sessions.schema import Action, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.simplify.names import slug

_NAME = re.compile(r'(\sname=")([^"]*)(")')


def without_private_data(session: Session) -> Session:
    """The session with `[kind]` in the place of whatever looks private in it."""
    cleaned = [_page_without(step.page) for step in session.steps]
    removed = tuple(dict.fromkeys(removal for _, removals in cleaned for removal in removals))
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
    pieces, order = html_pieces(page)
    changed, removed = remove_private_data([pieces[position] for position in order])
    for number, piece in changed.items():
        pieces[order[number]] = piece
    return "".join(pieces), removed


def _step(step: Step, page: str, removed: Sequence[Removal]) -> Step:
    pieces, _ = html_pieces(page)
    for position, piece in remove_repeated(pieces, removed).items():
        pieces[position] = piece
    words = _words_of_names(removed)
    written = "".join(_names_without(piece, words) if piece[0] == "<" else piece for piece in pieces)
    return msgspec.structs.replace(step, page=written, action=_action(step.action, words, removed))


def _names_without(tag: str, words: dict[str, str]) -> str:
    return _NAME.sub(lambda match: match[1] + _name_without(match[2], words) + match[3], tag)


def _action(action: Action, words: dict[str, str], removed: Sequence[Removal]) -> Action:
    if isinstance(action, Terminate):
        return action
    name = remove_repeated([action.name], removed).get(0, action.name)
    return msgspec.structs.replace(action, name=_name_without(name, words))


def name_without(name: str, removed: Sequence[Removal]) -> str:
    """A name of an element without the words of what was removed."""
    return _name_without(name, _words_of_names(removed))


def _words_of_names(removed: Sequence[Removal]) -> dict[str, str]:
    """What was removed as it stands in names, and its kind."""
    words = {slug(html.unescape(removal.text)): removal.kind for removal in removed if removal.is_repeated}
    return {word: kind for word, kind in words.items() if word}


def _name_without(name: str, words: dict[str, str]) -> str:
    for word, kind in words.items():
        if word in name:
            name = re.sub(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", kind, name)
    return name
