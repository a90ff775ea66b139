"""An AuditReport as a table on the terminal."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from replay_sessions.audit.findings import AuditReport, Finding, Spread, counted

__all__ = ["print_report"]


def print_report(report: AuditReport, console: Console) -> None:
    """Figures first, then warnings and faults, then the verdict."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, fact in _facts(report):
        table.add_row(name, escape(fact))
    console.print(table)
    for finding in report.warnings:
        _print_finding(finding, "warning", "yellow", console)
    for finding in report.faults:
        _print_finding(finding, "fault", "red", console)
    verdict = counted(len(report.faults), "fault") if report.faults else "no faults"
    console.print(
        f"{report.store}: {verdict}, {counted(len(report.warnings), 'warning')}", highlight=False, soft_wrap=True
    )


def _facts(report: AuditReport) -> list[tuple[str, str]]:
    splits = ", ".join(f"{count:,} {split}" for split, count in report.split_sessions.items())
    facts = [("sessions", f"{report.sessions:,} of {report.users:,} users: {splits}")]
    facts.append(("actions", ", ".join(f"{count:,} {name}" for name, count in report.action_counts.items())))
    facts.extend(
        (
            "grounding",
            f"{row.source} {row.action_type}: {row.on_page:,} of {row.targets:,} on the page ({row.share:.1%})",
        )
        for row in report.grounding
    )
    offsets = ", ".join(f"{offset}: {share:.1%}" for offset, share in report.grounding_by_offset.items())
    facts.append(("by offset", f"{offsets} of targets on the page one step before, at, after"))
    for name, spread in (
        ("steps", report.session_steps),
        ("page size", report.page_characters),
        ("session size", report.session_characters),
    ):
        if spread:
            facts.append((name, _spread(spread, "steps a session" if name == "steps" else "characters")))
    left_out = ", ".join(f"{count:,} {name}" for name, count in report.left_out_steps.items())
    facts.append(("left out", left_out or "nothing"))
    facts.append(("set aside", f"{report.set_aside:,} records"))
    facts.append(("fingerprint", report.fingerprint))
    return facts


def _spread(spread: Spread, unit: str) -> str:
    return f"median {spread.median:,}, 90% at most {spread.p90:,}, longest {spread.most:,} {unit}"


def _print_finding(finding: Finding, kind: str, colour: str, console: Console) -> None:
    line = f"[{colour}]{kind}[/{colour}] {escape(finding.message)}"
    if finding.sessions:
        line += f" [dim]({escape(', '.join(finding.sessions[:3]))}{' ...' if len(finding.sessions) > 3 else ''})[/dim]"
    console.print(line, highlight=False, soft_wrap=True)
