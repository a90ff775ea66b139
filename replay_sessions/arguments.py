"""The command line of replay_sessions: its commands, their options and the help that teaches them (see __main__.py)."""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from replay_sessions.audit.judge import AuditLimits
from replay_sessions.exporters import EXPORTERS, load_exporter
from replay_sessions.importers import IMPORTERS, load_importer
from replay_sessions.importers.importer import Importer

__all__ = ["command_parser"]


class _Parser(argparse.ArgumentParser):
    """Tells a wrong call in one line."""

    def __init__(self, **arguments: object) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **arguments)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"error: {message} (see `{self.prog} --help`)\n")
        sys.exit(2)


def command_parser(words: list[str], description: str) -> argparse.ArgumentParser:
    """The parser of a command line; `words` tells which importer's or exporter's options are needed."""
    parser = _Parser(prog="python -m replay_sessions", description=description)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_generate(commands)
    _add_import(commands, words)
    _add_show(commands)
    _add_check(commands)
    _add_export(commands, words)
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
    parser.set_defaults(command="generate")


def _add_import(commands: "_Commands[_Parser]", words: list[str]) -> None:
    parser = commands.add_parser(
        "import",
        help="read logs into a store",
        description="Reads logs into a store; what cannot be read is set aside, counted and listed in it. An import\n"
        "that was killed goes on where it was when the same command is given again.\n\n"
        "  python -m replay_sessions import jsonl logs.jsonl.gz --out stores/mine\n"
        "  python -m replay_sessions import jsonl logs.jsonl --mapping my_fields.toml --out stores/mine",
    )
    importers = parser.add_subparsers(metavar="IMPORTER", required=True, title="importers, each with its own --help")
    for name, entry in IMPORTERS.items():
        inner = importers.add_parser(name, help=entry.summary, description=entry.summary)
        inner.add_argument("source", type=Path, metavar="SOURCE", help="what to read")
        if name in words:  # only the importer that is asked for is loaded
            load_importer(name).add_arguments(inner)
        _add_out(inner)
        inner.add_argument(
            "--workers", type=_workers, default=os.cpu_count() or 1, metavar="N", help="processes (all cores)"
        )
        inner.add_argument(
            "--engine",
            choices=["processes", "ray"],
            default="processes",
            help="ray: the machines of a Ray cluster that share the folder of --out (processes)",
        )
        inner.add_argument(
            "--max-session-mib",
            type=int,
            default=Importer.longest_session_bytes >> 20,
            metavar="N",
            help="set sessions aside whose pages or lines are longer; a session is held in memory as a whole "
            f"({Importer.longest_session_bytes >> 20})",
        )
        inner.set_defaults(command="import", importer=name)


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
    parser.add_argument(
        "--recipe",
        metavar="NAME|FILE",
        help="how to simplify a raw page of a known site; found by itself when not given",
    )
    parser.add_argument("--as-is", action="store_true", help="the page is simplified already")
    parser.set_defaults(command="show")


def _add_check(commands: "_Commands[_Parser]") -> None:
    parser = commands.add_parser(
        "check",
        help="read every session and report what is wrong",
        description="Reads every session of a store and reports on it. Exit code 1 when there are faults: sessions\n"
        "that cannot be read, targets that are not on the page shown, pages shifted by a step, sessions that\n"
        "repeat another, users or near-duplicates on both sides of a split.\n\n"
        "  python -m replay_sessions check stores/mine\n"
        "  python -m replay_sessions check stores/mine --json > report.json\n"
        "  python -m replay_sessions check stores/mine --repair",
    )
    parser.add_argument("store", metavar="STORE", help="a store's folder, or 'demo'")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="write the store anew without the sessions at fault; set_aside.jsonl lists them with reasons",
    )
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
    parser.add_argument(
        "--private-pages",
        type=int,
        default=limits.private_pages,
        metavar="N",
        help=f"search about N pages, spread over the store, for private data; 0 for none ({limits.private_pages})",
    )
    parser.add_argument(
        "--workers", type=_workers, default=os.cpu_count() or 1, metavar="N", help="processes (all cores)"
    )
    parser.set_defaults(command="check")


def _add_export(commands: "_Commands[_Parser]", words: list[str]) -> None:
    parser = commands.add_parser(
        "export",
        help="write a store in another form",
        description="Writes a store in another form.\n\n"
        "  python -m replay_sessions export minari stores/mine --out datasets\n"
        "  python -m replay_sessions export hub stores/mine --out mine_for_the_hub",
    )
    exporters = parser.add_subparsers(metavar="EXPORTER", required=True, title="exporters, each with its own --help")
    for name, entry in EXPORTERS.items():
        inner = exporters.add_parser(name, help=entry.summary, description=entry.summary)
        inner.add_argument("store", metavar="STORE", help="a store's folder, or 'demo'")
        if name in words:
            load_exporter(name).add_arguments(inner)
        inner.set_defaults(command="export", exporter=name)


def _workers(given: str) -> int:
    if not given.isdecimal() or int(given) < 1:
        raise argparse.ArgumentTypeError(f"{given!r} is no number of processes, and 1 or more was expected")
    return int(given)


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
