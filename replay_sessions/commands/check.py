"""Reads every session of a store and reports on it.

Exit code 1 means that faults were found: sessions that cannot be read, targets that
are not on the page shown, pages shifted by a step, sessions that repeat another,
users or near-duplicates on both sides of a split.

  shop-r1 check stores/mine
  shop-r1 check stores/mine --json > report.json
  shop-r1 check stores/mine --repair
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Annotated

import msgspec
import tyro
from rich.console import Console
from rich.markup import escape

from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.errors import check_at_least
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import plain_text
from replay_sessions.private_data.customer_values import account_lines
from replay_sessions.store import SessionStore
from replay_sessions.store.audit.findings import AuditReport, pluralize
from replay_sessions.store.audit.judge import audit_store
from replay_sessions.store.audit.repair import open_alone, repair_store
from replay_sessions.store.audit.typed_texts import describe_rare
from replay_sessions.store.manifest import format_counts


class Check(Record):
    """The options of `check`.

    Attributes:
        store: A store's folder, or 'demo'.
        json: Print the report as JSON.
        repair: Rewrite the store without the faulty sessions; rejected.jsonl lists them with reasons.
        private: Print the account areas of this many sessions, spread over the store, to be read by eye.
    """

    store: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="STORE")]]
    json: bool = False
    repair: bool = False
    private: int = 0

    def __post_init__(self) -> None:
        check_at_least(0, private=self.private)


def _check(options: Check) -> int:
    store = SessionStore.open(options.store)
    with open_alone(store.path) if options.repair else nullcontext(store) as store:
        report = audit_store(store)
        if options.repair and report.faults:
            removed = repair_store(store, report)
            Console(stderr=options.json).print(f"rejected {removed:,} of {len(store):,} sessions", highlight=False)
            report = audit_store(SessionStore.open(options.store))
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print_report(report, Console())
        for area in _account_areas(store, options.private) if options.private else ():
            print(plain_text(area))
    return 1 if report.faults else 0


def _account_areas(store: SessionStore, count: int) -> Iterator[str]:
    """Yields the lines about accounts and orders on the pages of some sessions, each line once per session."""
    ids = store.session_ids()
    for session_id in ids[:: max(1, len(ids) // count)][:count]:
        lines = dict.fromkeys(line for step in store.session(session_id).steps for line in account_lines(step.page))
        yield f"{session_id}: {' | '.join(lines) or 'nothing'}"


run = command(Check, _check, program="shop-r1 check")


def _shown(text: str) -> str:
    return escape(plain_text(text))


def print_report(report: AuditReport, console: Console) -> None:
    """Prints the numbers, the warnings, the faults and the verdict."""
    for name, fact in _facts(report):
        console.print(f"[bold]{name:<14}[/bold]{_shown(fact)}", highlight=False, soft_wrap=not console.is_terminal)
    for kind, colour, findings in (("warning", "yellow", report.warnings), ("fault", "red", report.faults)):
        for finding in findings:
            sessions = _shown(", ".join(finding.sessions[:3])) + (" ..." if len(finding.sessions) > 3 else "")
            line = f"[{colour}]{kind}[/{colour}] {_shown(finding.message)}"
            line += f" [dim]({sessions})[/dim]" if sessions else ""
            console.print(line, highlight=False, soft_wrap=not console.is_terminal)
    verdict = pluralize(len(report.faults), "fault") if report.faults else "no faults"
    console.print(
        f"{report.store}: {verdict}, {pluralize(len(report.warnings), 'warning')}", highlight=False, soft_wrap=True
    )


def _facts(report: AuditReport) -> Iterator[tuple[str, str]]:
    yield "sessions", f"{report.sessions:,} of {report.users:,} users: {format_counts(report.split_sessions)}"
    yield "actions", format_counts(report.action_counts)
    for row in report.grounding:
        on_page = f"{row.on_page:,} of {row.targets:,} on the page ({row.share:.1%})"
        yield "grounding", f"{row.source} {row.action_type}: {on_page}"
    offsets = ", ".join(f"{offset}: {share:.1%}" for offset, share in report.grounding_by_offset.items())
    yield "by offset", f"{offsets} of targets on the page one step before, at, after"
    for name, unit, spread in (
        ("steps", "steps a session", report.session_steps),
        ("page size", "characters", report.page_characters),
        ("session size", "characters", report.session_characters),
    ):
        if spread:
            low = f"shortest {spread.least:,}, 10% at most {spread.p10:,}, median {spread.median:,}"
            yield name, f"{low}, 90% at most {spread.p90:,}, longest {spread.most:,} {unit}"
    if report.stop_auc is not None:
        yield "step number", f"tells where shoppers leave with AUC {report.stop_auc:.2f} (0.5: not at all)"
    yield "typed texts", describe_rare(report.rare_texts, report.typed_texts)
    yield "left out", format_counts(report.left_out_steps) or "nothing"
    yield "rejected", f"{report.rejected:,} records"
    yield "fingerprint", report.fingerprint
