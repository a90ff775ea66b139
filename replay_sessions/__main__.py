"""Make, fill, look at and check session stores.

python -m replay_sessions generate --sessions 300 --seed 0 --out stores/demo
python -m replay_sessions import jsonl logs.jsonl.gz --out stores/mine
python -m replay_sessions show stores/mine
python -m replay_sessions check stores/mine
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec
from rich.console import Console

from replay_sessions.audit import AuditLimits, audit_store
from replay_sessions.audit_report import print_report
from replay_sessions.errors import BadConfig, run_command
from replay_sessions.importers import IMPORTERS, load_importer
from replay_sessions.importers.run import run_import
from replay_sessions.manifest import SET_ASIDE_FILE
from replay_sessions.placing import check_target
from replay_sessions.progress import progress_bar
from replay_sessions.show import pick_step, show_page_file, show_session, show_step, show_store
from replay_sessions.splits import SplitPlan
from replay_sessions.store import SessionStore
from replay_sessions.writer import StoreWriter

__all__ = ["main"]

Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 the check found faults, 2 the call or its input was wrong."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        parsed = _parser(words).parse_args(words)
    except SystemExit as done:  # --help, or one line about a wrong call
        return int(done.code or 0)
    command: Command = parsed.command
    try:
        return run_command(lambda: command(parsed))
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


class _Parser(argparse.ArgumentParser):
    """Tells a wrong call in one line."""

    def __init__(self, **arguments: object) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **arguments)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"error: {message} (see `{self.prog} --help`)\n")
        sys.exit(2)


def _parser(words: list[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m replay_sessions", description=__doc__)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_generate(commands)
    _add_import(commands, words)
    _add_show(commands)
    _add_check(commands)
    return parser


_Commands = argparse._SubParsersAction  # what add_subparsers returns; argparse gives it no public name


def _add_generate(commands: "_Commands[_Parser]") -> None:
    parser = commands.add_parser(
        "generate",
        help="make sessions of the embedded demo shop",
        description="Makes sessions of the embedded demo shop, whose shoppers' policy is known.\n\n"
        "  python -m replay_sessions generate --sessions 300 --seed 0 --out stores/demo\n"
        "  python -m replay_sessions generate --sessions 50 --seed 1 --page-size realistic --out stores/long_pages",
    )
    parser.add_argument("--sessions", type=int, required=True, metavar="N", help="how many sessions; four to a shopper")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the same seed makes the same sessions (0)")
    parser.add_argument(
        "--page-size",
        choices=["small", "realistic"],
        default="small",
        help="small: about 10 elements a page; realistic: 500 and more, about 100 kB (small)",
    )
    _add_out(parser)
    parser.set_defaults(command=_generate)


def _add_import(commands: "_Commands[_Parser]", words: list[str]) -> None:
    known = "\n".join(f"  {name:<12}{entry.summary}" for name, entry in IMPORTERS.items())
    parser = commands.add_parser(
        "import",
        help="read logs into a store",
        description="Reads logs into a store; what cannot be read is set aside, counted and listed in it. An import\n"
        "that was killed goes on where it was when the same command is given again.\n\n"
        "  python -m replay_sessions import jsonl logs.jsonl.gz --out stores/mine\n"
        "  python -m replay_sessions import jsonl logs.jsonl --mapping my_fields.toml --out stores/mine\n\n"
        f"importers (each has a --help of its own):\n{known}",
    )
    importers = parser.add_subparsers(metavar="IMPORTER", required=True, title="importers")
    for name, entry in IMPORTERS.items():
        inner = importers.add_parser(name, help=entry.summary, description=entry.summary)
        inner.add_argument("source", type=Path, metavar="SOURCE", help="what to read")
        if name in words:  # only the importer that is asked for is loaded
            load_importer(name).add_arguments(inner)
        _add_out(inner)
        inner.add_argument(
            "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (all cores)"
        )
        inner.add_argument(
            "--engine",
            choices=["processes", "ray"],
            default="processes",
            help="ray: the machines of a Ray cluster that share the folder of --out (processes)",
        )
        inner.set_defaults(command=_import, importer=name)


def _add_show(commands: "_Commands[_Parser]") -> None:
    parser = commands.add_parser(
        "show",
        help="look at a store, a session, a step or a page",
        description="Shows a store, one of its sessions, a step's page, or a raw page as the simplifier leaves it.\n\n"
        "  python -m replay_sessions show demo\n"
        "  python -m replay_sessions show stores/mine --session visit-17\n"
        "  python -m replay_sessions show stores/mine --session visit-17 --step 2\n"
        "  python -m replay_sessions show page.html --recipe amazon",
    )
    parser.add_argument("what", metavar="STORE|PAGE", help="a store's folder, 'demo', or a file of HTML")
    parser.add_argument("--session", metavar="ID", help="one session of the store")
    parser.add_argument("--step", type=int, metavar="N", help="one step of the session, counted from 0, with its page")
    parser.add_argument("--recipe", metavar="NAME|FILE", help="how to simplify a raw page of a known site")
    parser.set_defaults(command=_show)


def _add_check(commands: "_Commands[_Parser]") -> None:
    parser = commands.add_parser(
        "check",
        help="read every session and report what is wrong",
        description="Reads every session of a store and reports on it. Exit code 1 when there are faults: sessions\n"
        "that cannot be read, targets that are not on the page shown, pages shifted by a step, sessions that\n"
        "repeat another, users or near-duplicates on both sides of a split.\n\n"
        "  python -m replay_sessions check stores/mine\n"
        "  python -m replay_sessions check stores/mine --json > report.json",
    )
    parser.add_argument("store", metavar="STORE", help="a store's folder, or 'demo'")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    limits = AuditLimits()
    parser.add_argument(
        "--min-grounding",
        type=float,
        default=limits.grounding,
        metavar="SHARE",
        help=f"least share of targets on their page, per source and action type ({limits.grounding})",
    )
    parser.add_argument(
        "--context-tokens",
        type=int,
        default=limits.context_tokens,
        metavar="N",
        help=f"warn of pages that are longer, by estimate ({limits.context_tokens})",
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (all cores)")
    parser.set_defaults(command=_check)


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="STORE", help="the folder that becomes the store")
    parser.add_argument("--overwrite", action="store_true", help="replace the store that is there")
    parser.add_argument(
        "--split-by",
        choices=["user", "session", "official"],
        default="user",
        help="what stays on one side of train, validation and test; official: as the publisher split (user)",
    )
    parser.add_argument("--validation", type=float, default=0.1, metavar="SHARE", help="share for validation (0.1)")
    parser.add_argument("--test", type=float, default=0.2, metavar="SHARE", help="share for test (0.2)")


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
    with progress_bar("importing", importer.size, bytes_read=True) as advance:
        done_before = run_import(
            importer,
            arguments.out,
            splits=_split_plan(arguments),
            overwrite=arguments.overwrite,
            workers=arguments.workers,
            engine=arguments.engine,
            on_progress=advance,
        )
    if done_before:
        print(f"went on with an import that was stopped: {done_before:,} of its parts were done")
    _tell(SessionStore.open(arguments.out))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    path = Path(arguments.what)
    if path.is_file():
        show_page_file(path, arguments.recipe, _console())
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
    store = SessionStore.open(arguments.store)
    limits = AuditLimits(grounding=arguments.min_grounding, context_tokens=arguments.context_tokens)
    with progress_bar("checking", len(store)) as advance:
        report = audit_store(store, limits, workers=arguments.workers, on_progress=advance)
    if arguments.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print_report(report, _console())
    return 1 if report.faults else 0


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
        lines.append(f"  left out: {total:,} events that are no click, typing or terminate ({counts}); see Step.gap")
    if manifest.set_aside:
        lines.append(f"  set aside: {manifest.set_aside:,} records, with reasons in {store.path / SET_ASIDE_FILE}")
    for split, count in manifest.split_sessions.items():
        if not count:
            lines.append(f"  warning: no session is in {split}; with few users, try --split-by session")
    for line in lines:
        print(line)


def _console() -> Console:
    return Console()


if __name__ == "__main__":
    sys.exit(main())
