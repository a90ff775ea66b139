"""Lets a person predict shoppers' next actions on a local page, and counts people like any other agent.

  python -m agents.human --sessions 5 --person ada --out runs/people
  python -m agents.human --sessions 5 --person ben --out runs/people
  python -m agents.human --store stores/mine --context.persona none \\
    --show-answer --out runs/told
  python -m agents.human agreement runs/people

The page is served to this machine alone, at an address that is printed. What it acknowledges is on the disk: close the
browser or end the program at any time, and the same command goes on. Everyone in a folder is asked the same. A row of
a person, beside other agents on the same steps:

  python -m benchmarks.leaderboard --sessions 5 --out runs/board \\
    --agents "ada=human?replies=runs/people&person=ada" copy_match

Exit codes: 0 done, 2 the call or its input was wrong, 130 ended by Ctrl-C.
"""

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tyro
from rich.box import SIMPLE_HEAD
from rich.table import Table

from agents.human.agreement import people_agreement
from agents.human.recording import Asked, Recording
from agents.human.server import PredictionServer
from agents.human.sitting import Sitting
from agents.results import results_console
from agents.scored_steps import AnySplit
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig
from replay_sessions.provenance import provenance
from replay_sessions.store import SessionStore
from shop_env.context import ContextConfig

PROGRAM = "python -m agents.human"
_ASKED_BY = ("time", "commit", "dirty", "python", "packages", "machine")


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Asks a person what each shopper does next.

    Attributes:
        out: The folder for the predictions.
        person: Who answers; each person's predictions are a file of their own.
        store: `demo` or the path of a session store.
        split: Which of its splits to ask about.
        sessions: Only the first so many sessions of the split; None: all.
        first_action: Ask about each session's first action too.
        context: What of a session is shown.
        show_answer: Show the logged action after each prediction. People learn from it, so their row must say so
            (`human?replies=DIR&show_answer=true`).
        port: Where to listen on this machine; 0: a free port.
    """

    out: Path
    person: str = "me"
    store: str = "demo"
    split: AnySplit = "test"
    sessions: int | None = None
    first_action: bool = False
    context: ContextConfig = ContextConfig()
    show_answer: bool = False
    port: int = 0

    def __post_init__(self) -> None:
        if self.sessions is not None and self.sessions < 1:
            raise BadConfig(f"--sessions is {self.sessions}; it must be 1 or more")
        if not 0 <= self.port < 65536:
            raise BadConfig(f"--port is {self.port}; it must be 0 to 65535")


class CompareAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Says how far the people of a folder agree with one another.

    Attributes:
        folder: The --out that they answered in.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="DIR")]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    if words[:1] == ["agreement"]:
        asked = parse_options(CompareAnswers, words[1:], program=f"{PROGRAM} agreement")
        return _show_agreement(Recording.open(asked.folder))
    return _ask(parse_options(Ask, words, program=PROGRAM, text=__doc__))


def _ask(options: Ask) -> int:
    store = SessionStore.open(options.store)
    asked = Asked(
        store=store.fingerprint,
        split=options.split,
        sessions=options.sessions,
        first_action=options.first_action,
        context=options.context,
        show_answer=options.show_answer,
    )
    recording = Recording.make(options.out, asked, store)
    with recording.asking(options.person) as kept:
        sitting = Sitting(recording, store, options.person, kept)
        stopped = False
        if not sitting.is_done:
            kept.begin_run(_asked_by(store))
            stopped = not _serve(PredictionServer(sitting, port=options.port))
        # Of how many is not said before the end: it would tell how soon sessions end.
        steps = f"{'' if stopped else 'all '}{sitting.answered} step{'' if sitting.answered == 1 else 's'}"
        print(f"{options.person}: {steps} answered, in {options.out}")
    return 130 if stopped else 0


def _serve(server: PredictionServer) -> bool:
    """Serves until everything is answered and the page has said so; False: until Ctrl-C."""
    with server:
        print(f"open {server.address}")
        print("Ctrl-C ends; what was submitted is recorded, and the same command goes on.", flush=True)
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        try:
            return server.told_done.wait()
        except KeyboardInterrupt:
            return False
        finally:
            server.shutdown()
            serving.join()


def _asked_by(store: SessionStore) -> dict[str, Any]:
    described = provenance({}, store=store)
    return {name: described[name] for name in _ASKED_BY}


def _show_agreement(recording: Recording) -> int:
    found = people_agreement(recording)
    table = Table(title=f"{recording.folder}: how far people agree", box=SIMPLE_HEAD, title_justify="left")
    for heading in ("pair", "steps", "same action, %", "same type, %", "Cohen's kappa of types"):
        table.add_column(heading, justify="left" if heading == "pair" else "right")
    for pair in found.pairs:
        shares = [f"{100 * share:.1f}" for share in (pair.exact, pair.types)]
        table.add_row(f"{pair.first}, {pair.second}", str(pair.steps), *shares, _kappa(pair.kappa))
    console = results_console()
    console.print(table)
    console.print(
        f"Fleiss' kappa of types over all {found.people} people, at the {found.steps} steps that all answered: "
        f"{_kappa(found.kappa)}",
        highlight=False,
    )
    return 0


def _kappa(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    sys.exit(main())
