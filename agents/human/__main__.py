"""Lets a person predict shoppers' next actions on a local page, and ranks people like any other agent.

  python -m agents.human --sessions 5 --person ada --out runs/people
  python -m agents.human --sessions 5 --person ben --out runs/people
  python -m agents.human --store stores/mine --context.persona none \\
    --show-answer --out runs/with_answers
  python -m agents.human agreement runs/people

The page is served to this machine alone, at an address that is printed. What it acknowledges is on the disk: close the
browser or end the program at any time, and the same command continues. Everyone in a folder gets the same questions. A
row of a person, beside other agents on the same steps:

  python -m benchmarks.leaderboard --sessions 5 --out runs/board \\
    --agents "ada=human?replies=runs/people&person=ada" copy_match

Needs starlette and uvicorn: pip install 'shop-r1[recorder]'. Exit codes: 0 done,
2 the call or its input was wrong, 130 ended by Ctrl-C.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import tyro

from agents.human.agreement import people_agreement
from agents.human.recording import Questions, Recording
from agents.human.sitting import Sitting
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.errors import check_at_least
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.serving import check_port
from replay_sessions.foundation.table import print_results
from replay_sessions.store import SessionStore
from shop_env.evaluation.scored_steps import AnySplit
from shop_env.observation import ContextConfig

PROGRAM = "python -m agents.human"
_PROVENANCE = ("time", "commit", "dirty", "python", "packages", "machine")


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Asks a person what each shopper does next.

    Attributes:
        out: The folder for the predictions.
        person: Who answers; each person's predictions are a file of their own.
        store: `demo` or the path of a session store.
        split: The split whose steps are predicted.
        sessions: Only the first so many sessions of the split; None: all.
        first_action: Ask for each session's first action too.
        context: What of a session is shown.
        show_answer: Show the logged action after each prediction. People learn from it, so their row must declare it
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
        check_at_least(1, sessions=self.sessions)
        check_port(self.port)


class CompareAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Computes how far the people of a folder agree with one another.

    Attributes:
        folder: The --out that they answered in.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="DIR")]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] != ["agreement"]:
        return command(Ask, _ask, program=PROGRAM, text=__doc__)(words)
    return command(CompareAnswers, _compare, program=f"{PROGRAM} agreement")(words[1:])


def _compare(options: CompareAnswers) -> None:
    print_results(people_agreement(Recording.open(options.folder)))


def _ask(options: Ask) -> int:
    with requires_extra("recorder"):
        from agents.human.server import PredictionServer  # noqa: PLC0415 - an extra that may be missing
    store = SessionStore.open(options.store)
    fields = {name: getattr(options, name) for name in Questions.__struct_fields__ if name in options.__struct_fields__}
    questions = Questions(**{**fields, "store": store.fingerprint})
    recording = Recording.make(options.out, questions, store)
    stopped = False
    with recording.lock_replies(options.person) as replies:
        sitting = Sitting(recording, store, options.person, replies)
        if not sitting.is_done:
            described = provenance({}, store=store)
            replies.begin_run({name: described[name] for name in _PROVENANCE})
            with PredictionServer(sitting, port=options.port) as server:
                print(f"open {server.address}")
                print("Ctrl-C ends; what was submitted is recorded, and the same command continues.", flush=True)
                try:
                    server.page_is_done.wait()
                except KeyboardInterrupt:
                    stopped = True
        # The total is not printed before the end: it would tell how soon sessions end.
        steps = f"{'' if stopped else 'all '}{sitting.answered} step{'' if sitting.answered == 1 else 's'}"
        print(f"{options.person}: {steps} answered, in {options.out}")
    return 130 if stopped else 0


if __name__ == "__main__":
    sys.exit(main())
