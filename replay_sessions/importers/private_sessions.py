"""Sessions without what is private in their texts and addresses, and in pages that were logged simplified.

Raw pages lose it while they are simplified, before their elements get names. In simplified ones the names change with
the texts that they are made of, and the actions that mean them: `write_to_anna_example_org` becomes `write_to_email`.
Ids and times stay as they are. Credentials never stay in an address, even where private data is kept.
"""

import html
import re

from msgspec.structs import replace

from replay_sessions.private_data import (
    find_private_data,
    remove_from_page,
    remove_from_text,
    remove_from_url,
    without_credentials,
)
from replay_sessions.schema import Session, Step, Terminate, TypeAndSubmit
from replay_sessions.simplify.names import slug

_NAME = re.compile(r'(?<=\sname=")[^"]*')


def without_private_data(session: Session, *, has_simplified_pages: bool) -> Session:
    """Returns a session without what is private in it.

    Args:
        has_simplified_pages: Its pages were logged simplified, and still hold private data.
    """
    persona = session.persona
    if persona is not None:
        traits = {name: remove_from_text(value) for name, value in persona.traits.items()}
        persona = replace(persona, text=remove_from_text(persona.text), traits=traits)
    steps = [_without_words(_without_page_data(step) if has_simplified_pages else step) for step in session.steps]
    return replace(session, steps=tuple(steps), goal=session.goal and remove_from_text(session.goal), persona=persona)


def without_secrets(session: Session) -> Session:
    """Returns a session without credentials in the addresses of its pages, and with all else left in."""
    steps = (replace(step, url=step.url and without_credentials(step.url)) for step in session.steps)
    return replace(session, steps=tuple(steps))


def _without_words(step: Step) -> Step:
    action = step.action
    if isinstance(action, TypeAndSubmit):
        action = replace(action, text=remove_from_text(action.text))
    rationale, url = step.rationale and remove_from_text(step.rationale), step.url and remove_from_url(step.url)
    return replace(step, action=action, rationale=rationale, url=url)


def _without_page_data(step: Step) -> Step:
    words = {slug(html.unescape(span.text)): span.kind for span in find_private_data(step.page)}
    page = remove_from_page(step.page)
    names = _new_names(_NAME.findall(page), words)
    page = _NAME.sub(lambda name: names[name[0]], page)
    action = step.action
    if not isinstance(action, Terminate):
        action = replace(action, name=names.get(action.name, action.name))
    return replace(step, page=page, action=action)


def _new_names(names: list[str], words: dict[str, str]) -> dict[str, str]:
    """Returns for each name the one with the kinds of words in their places, numbered where it is taken."""
    sought = "|".join(map(re.escape, sorted(filter(None, words), key=len, reverse=True)))
    if not sought:
        return dict(zip(names, names, strict=True))
    pattern = re.compile(rf"(?<![^\W_])(?:{sought})(?![^\W_])")
    new_names = {name: pattern.sub(lambda word: words[word[0]], name) for name in names}
    taken = {name for name in names if new_names[name] == name}
    for name, new_name in new_names.items():
        number = 1
        while name != new_names[name] and new_names[name] in taken:
            number += 1
            new_names[name] = f"{new_name}_{number}"
        taken.add(new_names[name])
    return new_names
