"""One's own visit as the env shows it: its recording, imported like any other, step by step."""

from html import escape
from pathlib import Path

from replay_sessions.errors import ImportFailed
from replay_sessions.importers.rrweb.importer import RrwebImporter, RrwebOptions
from replay_sessions.page_view import page_document
from replay_sessions.schema import Action, Click, Session, Terminate, TypeAndSubmit

__all__ = ["imported_session", "session_body"]


def imported_session(recording: Path) -> Session | None:
    """The session of a recording; None where there is none yet."""
    try:
        importer = RrwebImporter(recording, RrwebOptions(terminate_at_end=True))
        found = [done for part in importer.parts() for done in importer.read(part)]
    except ImportFailed:
        return None
    return next((done for done in found if isinstance(done, Session)), None)


def session_body(session: Session, number: int, address: str) -> str:
    """The steps as a list, and one of them with its page.

    Args:
        number: Of that step, from 0.
        address: Of this page.
    """
    number = max(0, min(number, len(session.steps) - 1))
    step = session.steps[number]
    rows = "".join(
        f'<li><a href="{escape(address)}?step={place}"{" aria-current=true" if place == number else ""}>'
        f"{escape(_in_words(one.action))}</a>{f'<q>{escape(one.rationale)}</q>' if one.rationale else ''}</li>"
        for place, one in enumerate(session.steps)
    )
    name = "" if isinstance(step.action, Terminate) else step.action.name
    document = page_document(step.page, marks={name: "logged"} if name else {})
    told = {"asked to": session.goal, "persona": session.persona.text if session.persona else None}
    about = "".join(f"<p><b>{label}</b> {escape(text)}</p>" for label, text in told.items() if text)
    return (
        f'<div class="told wide"><h1>Your visit as a model sees it</h1>{about}<div class="sides"><ol>{rows}</ol>'
        f'<iframe sandbox title="The page of step {number + 1}" srcdoc="{escape(document)}"></iframe></div></div>'
    )


def _in_words(action: Action) -> str:
    match action:
        case Click(name=name, click_type=kind):
            return f"click {name}" + (" (it bought)" if kind == "purchase" else "")
        case TypeAndSubmit(name=name, text=text, submitted=submitted):
            return f"type “{text}” into {name}" + ("" if submitted else ", not sent")
        case Terminate():
            return "leave"
