"""Reads every session of a store and reports on it.

Exit code 1 when there are faults: sessions that cannot be read, targets that are
not on the page shown, pages shifted by a step, sessions that repeat another, users
or near-duplicates on both sides of a split.

  python -m replay_sessions check stores/mine
  python -m replay_sessions check stores/mine --json > report.json
  python -m replay_sessions check stores/mine --repair
"""

import os
from collections.abc import Sequence
from typing import Annotated

import msgspec
import tyro
from rich.console import Console

from replay_sessions.audit.judge import AuditLimits, AuditReport, audit_size, audit_store
from replay_sessions.audit.repair import repair_store
from replay_sessions.audit.terminal_table import print_report
from replay_sessions.commands.command_line import parse_options
from replay_sessions.errors import BadConfig
from replay_sessions.progress_bar import progress_bar
from replay_sessions.store import SessionStore

__all__ = ["Check", "run"]

_LIMITS = AuditLimits()


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Checks a store.

    Attributes:
        store: A store's folder, or 'demo'.
        json: Print the report as JSON.
        repair: Write the store anew without the sessions at fault; set_aside.jsonl lists them with reasons.
        min_grounding: Least share of targets on their page, per source and action type.
        context_tokens: Warn of pages that are longer, by estimate.
        private_pages: Search about so many pages, spread over the store, for private data; 0 for none.
        workers: So many processes; None: one for each core.
    """

    store: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="STORE")]]
    json: bool = False
    repair: bool = False
    min_grounding: float = _LIMITS.grounding
    context_tokens: int = _LIMITS.context_tokens
    private_pages: int = _LIMITS.private_pages
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise BadConfig(f"--workers is {self.workers}, and 1 or more was expected")


def run(words: Sequence[str]) -> int:
    """Runs `check` with what was given after it; 1 where there are faults."""
    options = parse_options(Check, words, program="python -m replay_sessions check", text=__doc__)
    report = _audit(SessionStore.open(options.store, salvage=options.repair), options)
    if options.repair and report.faults:
        store = SessionStore.open(options.store, salvage=True)
        with progress_bar("repairing", len(store)) as advance:
            removed = repair_store(store, report, on_progress=advance)
        Console(stderr=options.json).print(f"set aside {removed:,} of {len(store):,} sessions", highlight=False)
        report = _audit(SessionStore.open(options.store), options)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print_report(report, Console())
    return 1 if report.faults else 0


def _audit(store: SessionStore, options: Check) -> AuditReport:
    limits = AuditLimits(
        grounding=options.min_grounding, context_tokens=options.context_tokens, private_pages=options.private_pages
    )
    with progress_bar("checking", audit_size(store)) as advance:
        return audit_store(store, limits, workers=options.workers or os.cpu_count() or 1, on_progress=advance)
