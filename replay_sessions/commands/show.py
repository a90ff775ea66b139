"""`python -m replay_sessions show`: a store's contents, a session step by step, or a page with its named elements."""

import gzip
import zlib
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

from replay_sessions.elements import find_elements
from replay_sessions.errors import BadConfig, StoreNotFound
from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.simplify import simplify
from replay_sessions.splits import SPLITS
from replay_sessions.store import SessionStore

__all__ = ["describe_action", "pick_step", "show_page_file", "show_session", "show_step", "show_store"]

_LISTED_SESSIONS = 20
_NAME_WIDTH = 60
_TEXT_WIDTH = 80
_GZIP_MAGIC = b"\x1f\x8b"


def describe_action(action: Action) -> str:
    """An action in a few words.

    >>> describe_action(TypeAndSubmit(name="search_input", text="red kettle"))
    "type 'red kettle' into search_input"
    """
    match action:
        case Click(name=name):
            return f"click {name}"
        case TypeAndSubmit(name=name, text=text, submitted=submitted):
            return f"type {text!r} into {name}" + ("" if submitted else " (not known to be submitted)")
        case Terminate():
            return "terminate"


def show_store(store: SessionStore, console: Console) -> None:
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


def show_session(session: Session, console: Console) -> None:
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
        action = escape(describe_action(step.action))
        console.print(f"{number:>4}  {action}{gap}", highlight=False, soft_wrap=True)
        if step.rationale:
            console.print(f"      [dim]{escape(step.rationale)}[/dim]", highlight=False, soft_wrap=True)


def show_step(step: Step, number: int, console: Console) -> None:
    """A step's page with its elements, and the action taken on it."""
    show_page(step.page, console)
    console.rule(f"step {number}", style="dim")
    console.print(escape(describe_action(step.action)), highlight=False, soft_wrap=True, style="bold")
    if step.rationale:
        console.print(escape(step.rationale), highlight=False, soft_wrap=True)


def show_page(page: str, console: Console) -> None:
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


def show_page_file(path: Path, recipe: str | None, console: Console, *, as_is: bool = False) -> None:
    """A raw page from a file, simplified; `as_is` for one that is simplified already."""
    try:
        raw = path.read_bytes()
        if raw.startswith(_GZIP_MAGIC):
            raw = gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise StoreNotFound(f"cannot read '{path}': {error}") from error
    show_page(raw.decode("utf-8", errors="replace") if as_is else simplify(raw, recipe).html, console)


def pick_step(session: Session, number: int) -> Step:
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
