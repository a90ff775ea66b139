"""Requests every rationale that a store lacks, then writes the store anew with those that came, and a report.

    SessionStore ─► steps without a rationale ─► Chat, many at once ─► Outcome of each ─► StoreWriter ─► new store

Requests and writing are separate: a store is written complete or not at all, and every answer is in the chat's account.
So a run that was killed during the requests continues there, and one that was killed during the writing only writes.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from agents.prompting.answers import NoAnswer
from agents.prompting.chat import Chat
from agents.rationales.options import RationaleOptions
from agents.rationales.report import Outcome, Report, build_report, report_table
from agents.rationales.request import INSTRUCTIONS, rationale_in, rationale_request
from replay_sessions.foundation.durable_files import replace_file
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.table import print_results
from replay_sessions.schema import Session, Step
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.work_folder import check_target
from shop_env.evaluation.generate import map_in_threads
from shop_env.evaluation.scored_steps import StepKey


def synthesise(options: RationaleOptions) -> int:
    """Runs the command; 1 where the store is not written."""
    store = SessionStore.open(options.store)
    if options.out.resolve() == store.path.resolve():
        raise BadConfig(f"--out {options.out} is the store itself: choose another path for the new version")
    check_target(options.out, overwrite=options.overwrite)  # before the work, not after
    options = _with_request(options)
    instructions = _read_instructions(options.prompt)
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
    lines = [*remarks, f"written: {_write_report(options, store, report, remarks)}"]
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
        extra: Any = json.loads(options.request)
    except ValueError as error:
        raise BadConfig(f"--request is no JSON: {error}") from error
    if not isinstance(extra, dict):
        raise BadConfig("--request must be a JSON object, such as '{\"top_p\": 0.9}'")
    cache = options.cache or str(_beside(options.out, "sqlite"))
    return msgspec.structs.replace(options, extra=extra, cache=cache)


def _read_instructions(file: Path | None) -> str:
    if file is None:
        return INSTRUCTIONS
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"--prompt '{file}' cannot be read as UTF-8 text: {error}") from error


def _request_all(
    store: SessionStore, options: RationaleOptions, chat: Chat, instructions: str
) -> Iterator[tuple[StepKey, Outcome]]:
    """The outcome of each step, as it comes. Ctrl-C goes through, and requests in flight are stored."""

    def ask(step: tuple[Session, int]) -> tuple[StepKey, Outcome]:
        session, index = step
        request = rationale_request(
            session, index, instructions=instructions, page_characters=options.page_characters, schema=options.schema
        )
        try:
            return (session.session_id, index), rationale_in(chat.ask(request, seed=options.seed))
        except NoAnswer as failure:
            return (session.session_id, index), failure

    def lacking() -> Iterator[tuple[Session, int]]:
        for session in store.sessions(options.split):
            yield from ((session, index) for index, step in enumerate(session.steps) if not step.rationale)

    count = 0
    with progress_bar("reading", sum(options.split in ("all", row.split) for row in store.index())) as advance:
        for session in store.sessions(options.split):
            count += sum(not step.rationale for step in session.steps)
            advance(1)
    with progress_bar("asking", count) as advance:
        for outcome in map_in_threads(ask, lacking(), options.concurrency):
            yield outcome
            advance(1)


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

    with (
        progress_bar("writing", len(store)) as advance,
        StoreWriter(
            options.out,
            source=manifest.source,
            splits=manifest.split_plan,
            options={**manifest.options, **own},
            overwrite=options.overwrite,
        ) as writer,
    ):
        writer.carry_over(store.path, manifest)
        for session in store.sessions():
            steps = tuple(
                with_rationale(step, outcomes.get((session.session_id, index)))
                for index, step in enumerate(session.steps)
            )
            writer.write(msgspec.structs.replace(session, steps=steps))
            advance(1)


def _beside(out: Path, suffix: str) -> Path:
    return out.with_name(f"{out.name}.rationales.{suffix}")


def _write_report(options: RationaleOptions, store: SessionStore, report: Report, remarks: list[str]) -> Path:
    """Writes the report beside the new store."""
    config = msgspec.to_builtins(options, enc_hook=str)
    content = {
        "report": msgspec.to_builtins(report),
        "remarks": remarks,
        "provenance": provenance(config, store=store, seed=options.seed),
    }
    path = _beside(options.out, "json")
    replace_file(path, msgspec.json.format(msgspec.json.encode(content)) + b"\n")
    return path
