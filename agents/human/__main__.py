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

`agreement` measures how far several people agree.

Needs starlette and uvicorn: pip install 'shop-r1[recorder]'. Exit codes: 0 done,
2 the call or its input was wrong, 130 ended by Ctrl-C.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Annotated

import tyro

from agents.human.introduction import Introduction, read_consent
from agents.human.recording import Questions, Recording
from agents.human.sitting import Sitting
from replay_sessions.foundation.command_line import command, parse_options, program_of
from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.serving import check_port
from replay_sessions.foundation.table import Cell, Column, Table, print_results
from replay_sessions.schema import reply_action
from replay_sessions.store import SessionStore
from shop_env.evaluation.scored_steps import AnySplit, StepKey
from shop_env.observation import ContextConfig
from shop_env.replies import Reply, parse_reply

Answers = Mapping[StepKey, dict[str, str]]
_PROVENANCE = ("time", "commit", "dirty", "python", "packages", "machine")


class Ask(Record):
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
        consent: A text file with the words that each person must agree to first; None: the project's own.
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
    consent: Path | None = None
    port: int = 0

    def __post_init__(self) -> None:
        check_at_least(1, sessions=self.sessions)
        check_port(self.port)


class CompareAnswers(Record):
    """Computes how far the people of a folder agree with one another.

    Pairs: the shares of equal actions and of equal types, and Cohen's kappa over types. All: Fleiss' kappa over types,
    at the steps that everybody answered.

    Attributes:
        folder: The --out that they answered in.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="DIR")]]


def _run(words: Sequence[str]) -> int:
    if words[:1] == ["agreement"]:
        _compare(parse_options(CompareAnswers, words[1:], program="python -m agents.human agreement"))
        return 0
    return command(Ask, _ask)(words)


def _compare(options: CompareAnswers) -> None:
    recording = Recording.open(options.folder)
    answers = {person: own for person in recording.people if (own := _answers(recording, person))}
    if len(answers) < 2:
        raise BadConfig(
            f"'{recording.folder}' holds the answers of {len(answers)} of at least 2 people: let others answer with "
            "`python -m agents.human --person NAME` and the same options"
        )
    table = agreement_table(answers, f"{recording.folder}: how far people agree")
    if not table.rows:
        raise BadConfig(f"No two people of '{recording.folder}' have answered the same step yet")
    print_results(table)


def agreement_table(answers: Mapping[str, Answers], title: str) -> Table:
    """How far people agree, from each person's actions by step: a row for each pair with a step in common."""
    rows: list[list[Cell]] = []
    for people in combinations(answers, 2):
        first, second = (answers[person] for person in people)
        if common := [(first[key], second[key]) for key in first if key in second]:
            types = [(mine["type"], theirs["type"]) for mine, theirs in common]
            shares = _share_equal(common), _share_equal(types)
            rows.append([", ".join(people), len(common), *shares, _format(cohens_kappa(types))])
    by_all = set.intersection(*map(set, answers.values()))
    kappa = fleiss_kappa([Counter(own[key]["type"] for own in answers.values()) for key in by_all])
    return Table(
        title=title,
        columns=[
            Column("pair"),
            Column("steps", "count"),
            Column("same action, %", "percent"),
            Column("same type, %", "percent"),
            Column("Cohen's kappa of types", "ratio"),
        ],
        rows=rows,
        notes=[
            f"Fleiss' kappa of types over all {len(answers)} people, at the {len(by_all)} steps that all "
            f"answered: {_format(kappa)}"
        ],
    )


def _format(kappa: float | None) -> str:
    return "–" if kappa is None else f"{kappa:.3f}"


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's kappa of two people's answers to the same questions.

    >>> cohens_kappa([("a", "a"), ("a", "a"), ("a", "b"), ("b", "b")])  # observed 3/4, chance (3*2 + 1*2)/16
    0.5
    """
    if not pairs:
        return None
    firsts, seconds = (Counter(answers) for answers in zip(*pairs, strict=True))
    chance = sum(count * seconds[kind] for kind, count in firsts.items()) / len(pairs) ** 2
    return _beyond_chance(_share_equal(pairs), chance)


def fleiss_kappa(ratings: Sequence[Mapping[str, int]]) -> float | None:
    """Fleiss' kappa.

    Args:
        ratings: For each question how many people gave each answer; the same number of people, two at least.
    """
    if not ratings:
        return None
    people = sum(ratings[0].values())
    agreeing = sum(count * (count - 1) for question in ratings for count in question.values())
    observed = agreeing / (people * (people - 1)) / len(ratings)
    totals = sum(map(Counter, ratings), Counter[str]())
    return _beyond_chance(observed, sum((count / totals.total()) ** 2 for count in totals.values()))


def _beyond_chance(observed: float, chance: float) -> float | None:
    """A kappa relates the observed agreement to that of chance; None: all answers are of one type.

    Chance is by each person's own shares of types (Cohen 1960), or by those of all together (Fleiss 1971).
    """
    return None if chance >= 1 else (observed - chance) / (1 - chance)


def _share_equal(pairs: Sequence[tuple[object, object]]) -> float:
    return sum(first == second for first, second in pairs) / len(pairs)


def _answers(recording: Recording, person: str) -> dict[StepKey, dict[str, str]]:
    cache = recording.replies_of(person)
    parsed = {step.key: parse_reply(cache.reply(step.key) or "") for step in recording.steps}
    return {key: reply_action(reply.action) for key, reply in parsed.items() if isinstance(reply, Reply)}


def _ask(options: Ask) -> int:
    with requires_extra("recorder"):
        from agents.human.server import PredictionServer  # noqa: PLC0415 - an extra that may be missing
    consent = read_consent(options.consent)
    store = SessionStore.open(options.store)
    fields = {name: getattr(options, name) for name in Questions.__struct_fields__ if name in options.__struct_fields__}
    questions = Questions(**{**fields, "store": store.fingerprint})
    recording = Recording.make(options.out, questions, store)
    stopped = False
    with recording.lock_replies(options.person) as replies:
        sitting = Sitting(recording, store, options.person, replies)
        if not sitting.is_done:
            described = provenance({}, store=store)
            begin = partial(replies.begin_run, {name: described[name] for name in _PROVENANCE})
            introduction = Introduction(recording, options.person, consent, begin)
            with PredictionServer(sitting, introduction, port=options.port) as server:
                print(f"open {server.address}")
                print("Ctrl-C ends; what was submitted is recorded, and the same command continues.", flush=True)
                try:
                    server.page_is_done.wait()
                except KeyboardInterrupt:
                    stopped = True
            if introduction.is_refused:
                print(f"{options.person} does not take part; no answer was recorded")
                return 0
        # The total is not printed before the end: it would show how soon sessions end.
        steps = f"{'' if stopped else 'all '}{sitting.answered} step{'' if sitting.answered == 1 else 's'}"
        print(f"{options.person}: {steps} answered, in {options.out}")
    return 130 if stopped else 0


main = program_of(_run)

if __name__ == "__main__":
    sys.exit(main())
