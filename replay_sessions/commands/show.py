"""Shows what is in a store, and what the simplifier makes of a page.

  python -m replay_sessions show demo
  python -m replay_sessions show stores/mine --session visit-17
  python -m replay_sessions show stores/mine --session visit-17 --step 2
  python -m replay_sessions show page.html --recipe amazon

A step is shown with its page and the elements that a reply can name.
"""

import gzip
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import tyro
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

from replay_sessions.commands.command_line import parse_options
from replay_sessions.elements import find_elements
from replay_sessions.errors import BadConfig, BadSession, StoreNotFound
from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.simplify import simplify
from replay_sessions.simplify.bounds import MAX_BYTES
from replay_sessions.splits import SPLITS
from replay_sessions.store import SessionStore

__all__ = ["Show", "run"]

_LISTED_SESSIONS = 20
_NAME_WIDTH = 60
_TEXT_WIDTH = 80
_GZIP_MAGIC = b"\x1f\x8b"


class Show(msgspec.Struct, frozen=True, kw_only=True):
    """Looks at a store or a page.

    Attributes:
        store_or_page: A store's folder, 'demo', or a file of HTML.
        session: One session of the store, by its id.
        step: One step of the session, counted from 0, with its page.
        recipe: How to simplify a raw page of a known site, a name or a file; None: it is found by the site.
        as_is: The page is simplified already.
    """

    store_or_page: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="STORE|PAGE")]]
    session: str | None = None
    step: int | None = None
    recipe: str | None = None
    as_is: bool = False


def run(words: Sequence[str]) -> int:
    """Runs `show` with what was given after it."""
    options = parse_options(Show, words, program="python -m replay_sessions show", text=__doc__)
    console = Console()
    path = Path(options.store_or_page)
    if path.is_file():
        _show_page_file(path, options.recipe, console, as_is=options.as_is)
        return 0
    store = SessionStore.open(options.store_or_page)
    if options.session is None:
        if options.step is not None:
            raise BadConfig("--step needs --session: which session's step?")
        _show_store(store, console)
        return 0
    session = store.session(options.session)
    if options.step is None:
        _show_session(session, console)
    else:
        _show_step(_pick_step(session, options.step), options.step, console)
    return 0


def _describe_action(action: Action) -> str:
    """An action in a few words.

    >>> _describe_action(TypeAndSubmit(name="search_input", text="red kettle"))
    "type 'red kettle' into search_input"
    """
    match action:
        case Click(name=name):
            return f"click {name}"
        case TypeAndSubmit(name=name, text=text, submitted=submitted):
            return f"type {text!r} into {name}" + ("" if submitted else " (not known to be submitted)")
        case Terminate():
            return "terminate"


def _show_store(store: SessionStore, console: Console) -> None:
    """The manifest in words, and the first sessions."""
    manifest = store.manifest
    mix = ", ".join(f"{count:,} {name}" for name, count in manifest.action_counts.items())
    splits = ", ".join(f"{manifest.split_sessions.get(split, 0):,} {split}" for split in SPLITS)
    facts = {
        "store": str(store.path),
        "source": manifest.source + "".join(f", {key} {value}" for key, value in manifest.options.items()),
        "sessions": f"{manifest.sessions:,} of {manifest.users:,} users: {splits} (by {manifest.split_plan.by})",
        "steps": f"{manifest.steps:,}: {mix}",
        "left out": _counts(manifest.left_out_steps) or "nothing",
        "set aside": f"{manifest.set_aside:,} records" + (" (set_aside.jsonl)" if manifest.set_aside else ""),
        "fingerprint": manifest.fingerprint,
    }
    for name, fact in facts.items():
        console.print(f"[bold]{name:<12}[/bold]{escape(fact)}", highlight=False, soft_wrap=True)
    table = Table("session", "user", "split", "steps", box=None, header_style="bold", padding=(0, 2, 0, 0))
    for row in store.index()[:_LISTED_SESSIONS]:
        table.add_row(escape(row.session_id), escape(row.user_id), row.split, str(row.steps))
    console.print(table)
    more = len(store) - _LISTED_SESSIONS
    rest = f"... and {more:,} more. " if more > 0 else ""
    console.print(f"{rest}One of them: add --session ID (and --step N for its page).", style="dim", highlight=False)


def _show_session(session: Session, console: Console) -> None:
    """A session's head and its actions."""
    facts = {"session": session.session_id, "user": session.user_id, "source": session.source}
    if session.goal:
        facts["goal"] = session.goal
    if session.persona:
        facts["persona"] = session.persona.text
    for name, fact in facts.items():
        console.print(f"[bold]{name:<9}[/bold]{escape(fact)}", highlight=False, soft_wrap=True)
    for number, step in enumerate(session.steps):
        gap = f" [yellow]({step.gap} events left out before)[/yellow]" if step.gap else ""
        action = escape(_describe_action(step.action))
        console.print(f"{number:>4}  {action}{gap}", highlight=False, soft_wrap=True)
        if step.rationale:
            console.print(f"      [dim]{escape(_rationale(step))}[/dim]", highlight=False, soft_wrap=True)


def _show_step(step: Step, number: int, console: Console) -> None:
    """A step's page with its elements, and the action taken on it."""
    _show_page(step.page, console)
    console.rule(f"step {number}", style="dim")
    console.print(escape(_describe_action(step.action)), highlight=False, soft_wrap=True, style="bold")
    if step.rationale:
        console.print(escape(_rationale(step)), highlight=False, soft_wrap=True)


def _rationale(step: Step) -> str:
    return f"{step.rationale} ({step.rationale_source})" if step.rationale_source else step.rationale or ""


def _show_page(page: str, console: Console) -> None:
    """A simplified page, then its named elements."""
    if console.is_terminal:
        console.print(Syntax(page, "html", word_wrap=True, background_color="default"))
    else:
        console.print(page, markup=False, highlight=False, soft_wrap=True)
    elements = find_elements(page)
    console.rule(f"{len(elements)} elements", style="dim")
    width = min(_NAME_WIDTH, max((len(element.name) for element in elements), default=0))
    for element in elements:
        line = f"{element.accepts:<6} [bold]{escape(element.name)}[/bold]{' ' * (width - len(element.name))}  "
        console.print(line + escape(element.text[:_TEXT_WIDTH]), highlight=False, soft_wrap=True)


def _show_page_file(path: Path, recipe: str | None, console: Console, *, as_is: bool = False) -> None:
    """A raw page from a file, simplified; `as_is` for one that is simplified already."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if raw.startswith(_GZIP_MAGIC):
            with gzip.open(path) as packed:
                raw = packed.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise StoreNotFound(f"cannot read '{path}': {error}") from error
    if len(raw) > MAX_BYTES:
        raise BadSession(f"'{path}' is longer than {MAX_BYTES:,} bytes, which no page is")
    _show_page(raw.decode("utf-8", errors="replace") if as_is else simplify(raw, recipe).html, console)


def _pick_step(session: Session, number: int) -> Step:
    """Step `number` of a session, counted from 0."""
    if not 0 <= number < len(session.steps):
        raise BadConfig(
            f"session {session.session_id!r} has steps 0 to {len(session.steps) - 1}, and --step is {number}"
        )
    return session.steps[number]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in _by_count(counts.items()))


def _by_count(items: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(items, key=lambda item: -item[1])
