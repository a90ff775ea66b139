"""Make, fill, look at and check session stores.

python -m replay_sessions generate --sessions 300 --seed 0 --out stores/demo
python -m replay_sessions import jsonl logs.jsonl.gz --out stores/mine
python -m replay_sessions show stores/mine
python -m replay_sessions check stores/mine
python -m replay_sessions export hub stores/mine --out mine_for_the_hub
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from replay_sessions.arguments import command_parser
from replay_sessions.audit.judge import AuditLimits, AuditReport, audit_size, audit_store
from replay_sessions.audit.repair import repair_store
from replay_sessions.audit.terminal_table import print_report
from replay_sessions.commands.show import pick_step, show_page_file, show_session, show_step, show_store
from replay_sessions.errors import BadConfig, run_command
from replay_sessions.exporters import load_exporter
from replay_sessions.importers import load_importer
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.importers.running.stopping import STOPPED, Terminated, terminable
from replay_sessions.progress_bar import progress_bar
from replay_sessions.splits import SplitPlan
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import SET_ASIDE_FILE
from replay_sessions.store.whole_folder import check_target

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 the check found faults, 2 the call or its input was wrong."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        parsed = command_parser(words, __doc__).parse_args(words)
    except SystemExit as done:  # --help, or one line about a wrong call
        return int(done.code or 0)
    commands = {"generate": _generate, "import": _import, "show": _show, "check": _check, "export": _export}
    try:
        return run_command(lambda: commands[parsed.command](parsed))
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _split_plan(arguments: argparse.Namespace) -> SplitPlan:
    return SplitPlan(by=arguments.split_by, validation=arguments.validation, test=arguments.test)


def _generate(arguments: argparse.Namespace) -> int:
    from replay_sessions.demo_shop import SOURCE, generate_sessions  # the shop is loaded only when asked for

    count, seed = arguments.sessions, arguments.seed
    if count < 1:
        raise BadConfig(f"--sessions is {count}, and at least 1 was expected")
    options = {"sessions": str(count), "seed": str(seed), "page_size": arguments.page_size}
    plan = _split_plan(arguments)
    with (
        StoreWriter(
            arguments.out, source=SOURCE, splits=plan, overwrite=arguments.overwrite, options=options
        ) as writer,
        progress_bar("generating", count) as advance,
    ):
        for session in generate_sessions(count, seed, arguments.page_size):
            writer.write(session)
            advance(1)
    _tell(SessionStore.open(arguments.out))
    return 0


def _import(arguments: argparse.Namespace) -> int:
    check_target(arguments.out, overwrite=arguments.overwrite)
    importer = load_importer(arguments.importer).from_arguments(arguments.source, arguments)
    for note in importer.notes:
        _console().print(note, style="dim", highlight=False, markup=False, soft_wrap=True)
    try:
        with (
            terminable(),
            progress_bar("importing", importer.size, bytes_read=importer.unit == "bytes") as advance,
        ):
            done_before = run_import(
                importer,
                arguments.out,
                splits=_split_plan(arguments),
                overwrite=arguments.overwrite,
                workers=arguments.workers,
                engine=arguments.engine,
                on_progress=advance,
            )
    except KeyboardInterrupt as stop:
        sys.stderr.write(f"{STOPPED}\n")
        return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)
    if done_before:
        print(f"went on with an import that was stopped: {done_before:,} of its parts were done")
    _tell(SessionStore.open(arguments.out))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    path = Path(arguments.what)
    if path.is_file():
        show_page_file(path, arguments.recipe, _console(), as_is=arguments.as_is)
        return 0
    store = SessionStore.open(arguments.what)
    if arguments.session is None:
        if arguments.step is not None:
            raise BadConfig("--step needs --session: which session's step?")
        show_store(store, _console())
        return 0
    session = store.session(arguments.session)
    if arguments.step is None:
        show_session(session, _console())
    else:
        show_step(pick_step(session, arguments.step), arguments.step, _console())
    return 0


def _check(arguments: argparse.Namespace) -> int:
    limits = AuditLimits(
        grounding=arguments.min_grounding,
        context_tokens=arguments.context_tokens,
        private_pages=arguments.private_pages,
    )
    report = _audit(SessionStore.open(arguments.store, salvage=arguments.repair), limits, arguments.workers)
    if arguments.repair and report.faults:
        store = SessionStore.open(arguments.store, salvage=True)
        with progress_bar("repairing", len(store)) as advance:
            removed = repair_store(store, report, on_progress=advance)
        _console(stderr=arguments.json).print(f"set aside {removed:,} of {len(store):,} sessions", highlight=False)
        report = _audit(SessionStore.open(arguments.store), limits, arguments.workers)
    if arguments.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print_report(report, _console())
    return 1 if report.faults else 0


def _export(arguments: argparse.Namespace) -> int:
    store = SessionStore.open(arguments.store)
    exporter = load_exporter(arguments.exporter).from_arguments(arguments)
    with progress_bar("exporting", len(store)) as advance:
        told = exporter.export(store, advance)
    for line in told:
        print(line)
    return 0


def _audit(store: SessionStore, limits: AuditLimits, workers: int) -> AuditReport:
    with progress_bar("checking", audit_size(store)) as advance:
        return audit_store(store, limits, workers=workers, on_progress=advance)


def _tell(store: SessionStore) -> None:
    """What came into a store, in a few lines."""
    manifest = store.manifest
    mix = ", ".join(f"{count:,} {name}" for name, count in manifest.action_counts.items())
    splits = ", ".join(f"{count:,} {split}" for split, count in manifest.split_sessions.items())
    lines = [
        f"{store.path}: {manifest.sessions:,} sessions of {manifest.users:,} users, {manifest.steps:,} steps ({mix})"
    ]
    lines.append(f"  split by {manifest.split_plan.by}: {splits} sessions; fingerprint {manifest.fingerprint}")
    if manifest.left_out_steps:
        counts = ", ".join(f"{count:,} {name}" for name, count in manifest.left_out_steps.items())
        total = sum(manifest.left_out_steps.values())
        lines.append(f"  left out: {total:,} logged events ({counts}); the next step's gap counts them")
    if manifest.set_aside:
        lines.append(f"  set aside: {manifest.set_aside:,} records, with reasons in {store.path / SET_ASIDE_FILE}")
    for split, count in manifest.split_sessions.items():
        if not count:
            lines.append(f"  warning: no session is in {split}; with few users, try --split-by session")
    for line in lines:
        print(line)


def _console(*, stderr: bool = False) -> Console:
    return Console(stderr=stderr)


if __name__ == "__main__":
    sys.exit(main())
