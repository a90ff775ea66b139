"""Shows a store, and a page as the simplifier writes it.

  shop-r1 show demo
  shop-r1 show stores/mine --session visit-17
  shop-r1 show stores/mine --session visit-17 --step 2
  shop-r1 show page.html --recipe amazon

A step is shown with its page and the elements that a reply can name.
"""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

from replay_sessions.commands.contents import print_contents
from replay_sessions.elements import find_elements
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import UNREADABLE, open_unpacked
from replay_sessions.foundation.errors import BadConfig, BadSession, StoreNotFound
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import printable
from replay_sessions.schema import Session, Step, describe_action
from replay_sessions.simplify import simplify
from replay_sessions.simplify.media import VIEWPORTS, ViewportName
from replay_sessions.simplify.parsing import MAX_BYTES
from replay_sessions.store import SessionStore

_LISTED_SESSIONS = 20
_NAME_WIDTH = 60
_TEXT_WIDTH = 80
_console = Console(highlight=False, soft_wrap=True)


def _shown(text: str) -> str:
    """Returns a text of a log for the console."""
    return escape(printable(text))


class Show(Record):
    """The options of `show`.

    Attributes:
        store_or_page: A store's folder, 'demo', or a file of HTML.
        session: ID of a session of the store.
        step: Number of a step of the session, counted from 0, to show with its page.
        recipe: Recipe for a raw page of a known site, a name or a file; None: it is chosen by the site.
        viewport: Size of the window for which a raw page's styles are read.
    """

    store_or_page: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="STORE|PAGE")]]
    session: str | None = None
    step: int | None = None
    recipe: str | None = None
    viewport: ViewportName = "desktop"


def _show(options: Show) -> None:
    path = Path(options.store_or_page)
    if path.is_file():
        _show_page_file(path, options)
        return
    store = SessionStore.open(options.store_or_page)
    if options.session is None:
        if options.step is not None:
            raise BadConfig("--step needs --session: which session's step?")
        _show_store(store)
        return
    session = store.session(options.session)
    if options.step is None:
        _show_session(session)
    elif 0 <= options.step < len(session.steps):
        _show_step(session.steps[options.step], options.step)
    else:
        raise BadConfig(
            f"session {session.session_id!r} has steps 0 to {len(session.steps) - 1}, and --step is {options.step}"
        )


def _show_store(store: SessionStore) -> None:
    """Prints the content of a store and its first sessions."""
    print_contents(store)
    table = Table("session", "user", "split", "steps", box=None, header_style="bold", padding=(0, 2, 0, 0))
    for row in store.index()[:_LISTED_SESSIONS]:
        table.add_row(_shown(row.session_id), _shown(row.user_id), row.split, str(row.steps))
    _console.print(table, soft_wrap=False)
    more = len(store) - _LISTED_SESSIONS
    rest = f"... and {more:,} more. " if more > 0 else ""
    _console.print(f"{rest}One of them: add --session ID (and --step N for its page).", style="dim")


def _show_session(session: Session) -> None:
    """Prints the head and the actions of a session."""
    facts = {
        "session": session.session_id,
        "user": session.user_id,
        "source": session.source,
        "goal": session.goal,
        "persona": session.persona and session.persona.text,
    }
    for name, fact in facts.items():
        if fact:
            _console.print(f"[bold]{name:<12}[/bold]{_shown(fact)}")
    for number, step in enumerate(session.steps):
        gap = f" [yellow]({step.gap} events left out before)[/yellow]" if step.gap else ""
        _console.print(f"{number:>4}  {_shown(describe_action(step.action))}{gap}")
        if step.rationale:
            _console.print(f"      [dim]{_shown(_rationale(step))}[/dim]")


def _show_step(step: Step, number: int) -> None:
    """Prints the page of a step with its elements, and the action taken on it."""
    _show_page(step.page)
    _console.rule(f"step {number}", style="dim")
    _console.print(_shown(describe_action(step.action)), style="bold")
    if step.rationale:
        _console.print(_shown(_rationale(step)))


def _rationale(step: Step) -> str:
    return f"{step.rationale} ({step.rationale_source})" if step.rationale_source else step.rationale or ""


def _show_page(page: str) -> None:
    """Prints a simplified page, then its named elements."""
    page = printable(page)
    if _console.is_terminal:
        _console.print(Syntax(page, "html", word_wrap=True, background_color="default"), soft_wrap=False)
    else:
        _console.print(page, markup=False)
    elements = find_elements(page)
    _console.rule(f"{len(elements)} elements", style="dim")
    width = min(_NAME_WIDTH, max((len(element.name) for element in elements), default=0))
    for element in elements:
        padding = " " * (width - len(element.name))
        text = _shown(element.text[:_TEXT_WIDTH])
        _console.print(f"{element.accepts:<6} [bold]{_shown(element.name)}[/bold]{padding}  {text}")


def _show_page_file(path: Path, options: Show) -> None:
    """Simplifies a raw page from a file and prints it."""
    try:
        with open_unpacked(path) as file:
            raw = file.read(MAX_BYTES + 1)
    except UNREADABLE as error:
        raise StoreNotFound(f"cannot read '{path}': {error}") from error
    if len(raw) > MAX_BYTES:
        raise BadSession(f"'{path}' is longer than {MAX_BYTES:,} bytes, which no page is")
    _show_page(simplify(raw, options.recipe, viewport=VIEWPORTS[options.viewport]).html)


run = command(Show, _show, program="shop-r1 show")
