"""Requests every rationale that a store lacks, then writes the store anew with those that came, and a report.

    SessionStore ─► steps without a rationale ─► Chat, many at once ─► Outcome of each ─► StoreWriter ─► new store

Requests and writing are separate: a store is written complete or not at all, and every answer is in the chat's account.
So a run that was killed during the requests continues there, and one that was killed during the writing only writes.

The report has statistics of rationales, the log's beside the model's: lengths, names of elements in them, repetitions,
and failures. A rationale with the name of the element that was used holds the answer instead of a reason: a model
trained on it learns to write the name twice.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from agents.prompting.answers import NoAnswer
from agents.prompting.chat import Chat
from agents.rationales.request import (
    INSTRUCTIONS,
    NoRationale,
    RationaleOptions,
    is_reconstruction,
    rationale_in,
    rationale_request,
    reconstruction_request,
)
from replay_sessions.foundation.durable_files import replace_json
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.progress import track
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Column, Table, print_results
from replay_sessions.schema import Action, Session, Step
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.work_folder import check_target
from shop_env.evaluation.generate import map_in_threads
from shop_env.evaluation.scored_steps import StepKey
from shop_env.prompts import read_instructions
from shop_env.words import words_of

Outcome = str | NoRationale | NoAnswer
_SEVERAL_WORDS = 2  # a name of one word, such as `search`, is an ordinary word of a sentence too


class Statistics(Record):
    """Of some rationales.

    Attributes:
        words: Shortest, median, 95th percentile and longest, in words; empty where there are none.
        name_verbatim: How many hold the name of the element that was used, as it is written.
        name_words: How many hold all words of its most specific part (the one of most words, if two or more).
        duplicates: How many repeat an earlier one, but for case and spaces.
    """

    count: int
    words: tuple[int, ...] = ()
    name_verbatim: int = 0
    name_words: int = 0
    duplicates: int = 0


class Report(Record):
    """The outcomes of a synthesis.

    Attributes:
        steps: In the splits that were processed.
        logged: Rationales that were there before.
        synthesised: Those of the model.
        without: At how many steps the model gave none, by what it did instead.
        unanswered: At how many there was no answer, by cause.
        first_refusals: The texts of some of them.
    """

    steps: int
    logged: Statistics
    synthesised: Statistics
    without: dict[str, int] = {}
    unanswered: dict[str, int] = {}
    first_refusals: list[str] = []


def synthesise(options: RationaleOptions) -> int:
    """Runs the command; 1 where the store is not written."""
    store = SessionStore.open(options.store)
    if options.out.resolve() == store.path.resolve():
        raise BadConfig(f"--out {options.out} is the store itself: choose another path for the new version")
    check_target(options.out, overwrite=options.overwrite)  # before the work, not after
    options = _with_request(options)
    instructions = read_instructions(str(options.prompt), "--prompt") if options.prompt else INSTRUCTIONS
    chat = Chat(options)
    try:
        outcomes = dict(_request_all(store, options, chat, instructions))
        remarks = chat.remarks()
    finally:
        chat.stop()
    chat.close()
    report = build_report(store.sessions(options.split), outcomes)
    unanswered = sum(report.unanswered.values())
    is_written = not unanswered or options.partial
    if is_written:
        _write_store(store, options, outcomes, instructions)
    content = {
        "report": msgspec.to_builtins(report),
        "remarks": remarks,
        "provenance": provenance(msgspec.to_builtins(options, enc_hook=str), store=store, seed=options.seed),
    }
    path = _beside(options.out, "json")
    replace_json(path, content)
    lines = [*remarks, f"written: {path}"]
    if is_written:
        lines.append(f"written: {options.out}")
    else:
        first = next(outcome for outcome in outcomes.values() if isinstance(outcome, NoAnswer))
        lines.append(f"{unanswered:,} steps have no answer, so '{options.out}' is not written; the first: {first}")
        lines.append("the same command continues where this one ended (--partial writes the store as it is)")
    print_results(report_table(report), *lines)
    return 0 if is_written else 1


def _with_request(options: RationaleOptions) -> RationaleOptions:
    """The options with the further fields of each request, and a file of answers beside the new store."""
    try:
        extra = msgspec.json.decode(options.request, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise BadConfig(f"--request is no JSON object, such as '{{\"top_p\": 0.9}}': {error}") from error
    cache = options.cache or str(_beside(options.out, "sqlite"))
    return msgspec.structs.replace(options, extra=extra, cache=cache)


def _request_all(
    store: SessionStore, options: RationaleOptions, chat: Chat, instructions: str
) -> Iterator[tuple[StepKey, Outcome]]:
    """The outcome of each step, as it comes. Ctrl-C goes through, and requests in flight are stored."""

    def ask(step: tuple[Session, int]) -> tuple[StepKey, Outcome]:
        session, index = step
        key = session.session_id, index
        try:
            return key, _request_one(session, index, options, chat, instructions)
        except NoAnswer as failure:
            return key, failure

    def lacking() -> Iterator[tuple[Session, int]]:
        for session in store.sessions(options.split):
            yield from ((session, index) for index, step in enumerate(session.steps) if not step.rationale)

    sessions = sum(options.split in ("all", row.split) for row in store.index())
    read = track(store.sessions(options.split), "reading", sessions)
    count = sum(not step.rationale for session in read for step in session.steps)
    outcomes = map_in_threads(ask, (deque([step]) for step in lacking()), options.concurrency)
    yield from track(outcomes, "asking", count)


def _request_one(
    session: Session, index: int, options: RationaleOptions, chat: Chat, instructions: str
) -> str | NoRationale:
    """The first rationale, or the first from which the action can be reconstructed.

    One that holds the element's name as it is written is not tried: copying is no reconstruction.
    """
    request, logged = rationale_request(session, index, instructions, options), session.steps[index].action
    if options.reconstruct is None:
        return rationale_in(chat.ask(request, seed=options.seed))
    failed = NoRationale("not reconstructed", "")
    for number in range(options.reconstruct):
        drawn = rationale_in(chat.ask(request, seed=options.seed + number))
        if isinstance(drawn, NoRationale):
            failed = drawn
        elif not _holds_name(getattr(logged, "name", ""), drawn):
            asked = reconstruction_request(session, index, drawn, options)
            if is_reconstruction(chat.ask(asked, seed=options.seed), logged):
                return drawn
            failed = NoRationale("not reconstructed", drawn)
    return failed


def _write_store(
    store: SessionStore, options: RationaleOptions, outcomes: Mapping[StepKey, Outcome], instructions: str
) -> None:
    """Writes the store with the rationales that came; every other rationale, page and action is as it was."""
    manifest = store.manifest
    digest = hashlib.blake2b(instructions.encode(), digest_size=8).hexdigest()
    own = {"rationales_by": options.model, "rationales_prompt": digest}

    def with_rationale(step: Step, outcome: Outcome | None) -> Step:
        if not isinstance(outcome, str) or step.rationale:
            return step
        return msgspec.structs.replace(step, rationale=outcome, rationale_source=options.model)

    with StoreWriter(
        options.out,
        source=manifest.source,
        splits=manifest.split_plan,
        options={**manifest.options, **own},
        overwrite=options.overwrite,
    ) as writer:
        writer.carry_over(store.path, manifest)
        for session in track(store.sessions(), "writing", len(store)):
            steps = tuple(
                with_rationale(step, outcomes.get((session.session_id, index)))
                for index, step in enumerate(session.steps)
            )
            writer.write(msgspec.structs.replace(session, steps=steps))


def _beside(out: Path, suffix: str) -> Path:
    return out.with_name(f"{out.name}.rationales.{suffix}")


def build_report(sessions: Iterable[Session], outcomes: Mapping[StepKey, Outcome]) -> Report:
    """The report on these outcomes.

    Args:
        sessions: As they were before.
    """
    steps = [
        (step, outcomes.get((session.session_id, index)))
        for session in sessions
        for index, step in enumerate(session.steps)
    ]
    without = [outcome for outcome in outcomes.values() if isinstance(outcome, NoRationale)]
    causes = Counter(str(outcome.cause) for outcome in outcomes.values() if isinstance(outcome, NoAnswer))
    return Report(
        steps=len(steps),
        logged=compute_statistics((step.action, step.rationale) for step, _ in steps if step.rationale),
        synthesised=compute_statistics(
            (step.action, outcome) for step, outcome in steps if isinstance(outcome, str) and not step.rationale
        ),
        without=dict(Counter(str(outcome.problem) for outcome in without).most_common()),
        unanswered=dict(causes.most_common()),
        first_refusals=[outcome.text[:200] for outcome in without if outcome.problem == "refused"][:3],
    )


def compute_statistics(rationales: Iterable[tuple[Action, str]]) -> Statistics:
    """The statistics of rationales, each with its action."""
    pairs = [(getattr(action, "name", ""), text) for action, text in rationales]
    lengths = [len(text.split()) for _, text in pairs]
    texts = {" ".join(text.lower().split()) for _, text in pairs}
    return Statistics(
        count=len(pairs),
        words=tuple(round(length) for length in np.percentile(lengths, [0, 50, 95, 100]).tolist()) if pairs else (),
        name_verbatim=sum(_holds_name(name, text) for name, text in pairs),
        name_words=sum(_holds_specific_part(name, text) for name, text in pairs),
        duplicates=len(pairs) - len(texts),
    )


def report_table(report: Report) -> Table:
    """The report for a terminal."""
    both = (report.logged, report.synthesised)
    counts_of = {
        "name of the element, verbatim": "name_verbatim",
        "all words of the name": "name_words",
        "repeated": "duplicates",
    }
    failures = (("no rationale in the answer", report.without), ("no answer", report.unanswered))
    return Table(
        columns=[Column("", name="statistic"), Column("the log", "percent"), Column("the model", "percent")],
        rows=[
            ["rationales", *(f"{of.count:,}" for of in both)],
            ["words (min, median, p95, max)", *(", ".join(map(str, of.words)) or None for of in both)],
            *(
                [f"{name}, %", *(getattr(of, field) / of.count if of.count else None for of in both)]
                for name, field in counts_of.items()
            ),
        ],
        notes=[
            f"{name}: {', '.join(f'{count:,} {cause}' for cause, count in counts.items())}"
            for name, counts in failures
            if counts
        ],
    )


def _holds_name(name: str, text: str) -> bool:
    return len(words_of(name)) >= _SEVERAL_WORDS and name in text


def _holds_specific_part(name: str, text: str) -> bool:
    """Whether a text has all words of the longest part of a name: of `results.red_kettle.view` that is `red_kettle`."""
    words = max((words_of(part) for part in name.split(".")), key=len)
    return len(words) >= _SEVERAL_WORDS and set(words) <= set(words_of(text))
