"""Removes private data from the texts and addresses of sessions, and marks it on pages that were logged simplified.

Raw pages lose private data while they are simplified, before their elements get names. On simplified pages, names that
contain a changed text change, too, and with them the actions: `write_to_anna_example_org` becomes `write_to_email`.
Ids and times are unchanged. Credentials are removed from addresses even if private data is kept.
"""

import html
import re
from collections.abc import Container

from msgspec.structs import replace

from replay_sessions.private_data import remove_from_text, remove_from_url, without_credentials
from replay_sessions.private_data.customer_values import OwnValues
from replay_sessions.private_data.customers import Customer, words_in
from replay_sessions.private_data.removal import MARKED, judge_mailboxes, mark_page, settle
from replay_sessions.schema import Click, Session, Step, TypeAndSubmit

_NAME = re.compile(r'(?<=\sname=")[^"]*')
_HOST = re.compile(r"[^/]*//(?:[^/?#@]*@)?([^/?#:]*).*", re.DOTALL)


class _ByForm:
    """Removes values that look private by their form; in pages, they are only marked.

    Args:
        session: The session, whose addresses tell the hosts of the shop.
    """

    def __init__(self, session: Session) -> None:
        hosts = {_HOST.sub(r"\1", step.url.lower()) for step in session.steps if step.url and "//" in step.url}
        self.hosts = {host.removeprefix("www.") for host in hosts}

    def remove_from_text(self, text: str) -> str:
        return remove_from_text(text, self.hosts)

    def remove_from_url(self, url: str) -> str:
        return remove_from_url(url, self.hosts)

    def remove_from_name(self, name: str) -> str:
        return remove_from_text(name, self.hosts)

    def remove_from_page(self, page: str, url: str) -> tuple[str, dict[str, str]]:
        marked = mark_page(page)
        values = MARKED.findall(judge_mailboxes(marked, self.hosts))
        forms = {words_in(html.unescape(value)): kind for kind, value in values if kind}
        _, names = OwnValues(Customer(forms=forms), None).remove_from_page(page)
        return marked, {name: self.remove_from_text(new_name) for name, new_name in names.items()}


Remover = OwnValues | _ByForm


def mark_by_form(session: Session, *, has_simplified_pages: bool) -> Session:
    """Returns a session without values that look private by their form; on its pages, they are only marked.

    Args:
        has_simplified_pages: Whether the pages were logged simplified; raw pages were marked during simplification.
    """
    by_form = _ByForm(session)
    session = without_private_data(session, by_form, has_simplified_pages=has_simplified_pages)
    steps = (replace(step, page=judge_mailboxes(step.page, by_form.hosts)) for step in session.steps)
    return replace(session, steps=tuple(steps))


def settle_session(session: Session, kept: Container[str] = ()) -> Session:
    """Returns a session whose marked values are replaced by their kinds, except those in `kept`."""
    steps = (replace(step, page=settle(step.page, kept)) for step in session.steps)
    return replace(session, steps=tuple(steps))


def without_number(session_id: str) -> str:
    """Returns the id of a session in its log, without the number that an import adds when it splits a visit.

    >>> without_number("s1 (2)"), without_number("kiosk (Berlin) 17")
    ('s1', 'kiosk (Berlin) 17')
    """
    return re.sub(r" \(\d+\)$", "", session_id)


def without_private_data(session: Session, remover: Remover, *, has_simplified_pages: bool = True) -> Session:
    """Returns a session without private data.

    Args:
        has_simplified_pages: Whether the pages still contain private data.
    """
    text = remover.remove_from_text
    persona = session.persona
    if persona is not None:
        traits = {name: text(value) for name, value in persona.traits.items()}
        persona = replace(persona, text=text(persona.text), traits=traits)
    steps = [
        _without_words(_without_page_data(step, remover) if has_simplified_pages else step, remover)
        for step in session.steps
    ]
    return replace(session, steps=tuple(steps), goal=session.goal and text(session.goal), persona=persona)


def without_secrets(session: Session) -> Session:
    """Returns a session without credentials in the addresses of its pages, and otherwise unchanged."""
    steps = (replace(step, url=step.url and without_credentials(step.url)) for step in session.steps)
    return replace(session, steps=tuple(steps))


def _without_words(step: Step, remover: Remover) -> Step:
    action = step.action
    if isinstance(action, TypeAndSubmit):
        action = replace(action, text=remover.remove_from_text(action.text))
    rationale = step.rationale and remover.remove_from_text(step.rationale)
    return replace(step, action=action, rationale=rationale, url=step.url and remover.remove_from_url(step.url))


def _without_page_data(step: Step, remover: Remover) -> Step:
    page, names = remover.remove_from_page(step.page, step.url or "")
    names = _number(names)
    page = _NAME.sub(lambda name: names.get(name[0], settle(name[0])), page)
    action = step.action
    if isinstance(action, Click | TypeAndSubmit):
        name = names.get(action.name) or remover.remove_from_name(action.name)  # of an element on another page
        action = replace(action, name=name)
    return replace(step, page=page, action=action)


def _number(new_names: dict[str, str]) -> dict[str, str]:
    """Returns the new name for each name, numbered if it is taken."""
    taken = {name for name, new_name in new_names.items() if new_name == name}
    numbered = dict(new_names)
    for name, new_name in new_names.items():
        number = 1
        while name != numbered[name] and numbered[name] in taken:
            number += 1
            numbered[name] = f"{new_name}_{number}"
        taken.add(numbered[name])
    return numbered
