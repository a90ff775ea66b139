"""What `python -m agents.rationales` does: from its options to a new store and a report (__main__.py has the help)."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agents.prompting.chat import Chat
from agents.prompting.failures import NoAnswer
from agents.prompting.options import ServerOptions
from agents.rationales.options import RationaleOptions
from agents.rationales.report import Report, report_lines, report_on
from agents.rationales.request import INSTRUCTIONS
from agents.rationales.synthesis import Outcome, ask_rationales, steps_without, write_store
from agents.results import results_console
from agents.scored_steps import AnySplit, StepKey
from replay_sessions.errors import BadConfig
from replay_sessions.progress_bar import progress_bar
from replay_sessions.provenance import provenance
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file
from replay_sessions.store.whole_folder import check_target

__all__ = ["run"]


def run(given: RationaleOptions) -> int:
    """Runs the command."""
    store = SessionStore.open(given.store)
    if given.out.resolve() == store.path.resolve():
        raise BadConfig(f"--out {given.out} is the store itself: a new version needs a place of its own")
    check_target(given.out, overwrite=given.overwrite)  # found before the work, not after
    instructions = _instructions(given.prompt)
    chat = Chat(_server_options(given))
    try:
        outcomes = _ask(store, given, chat, instructions)
        remarks = chat.remarks()
    finally:
        chat.stop()
    chat.close()
    report = report_on(store.sessions(given.split), outcomes)
    made_with = {"rationales_by": given.model, "rationales_prompt": _digest(instructions)}
    unanswered = sum(report.unanswered.values())
    written = not unanswered or given.partial
    if written:
        with progress_bar("writing", len(store)) as advance:
            write_store(
                store,
                given.out,
                outcomes,
                written_by=given.model,
                options=made_with,
                overwrite=given.overwrite,
                on_progress=advance,
            )
    told = [*report_lines(report), *remarks, f"written: {_write_report(given, store, report, remarks)}"]
    if written:
        told.append(f"written: {given.out}")
    else:
        first = next(str(one) for one in outcomes.values() if isinstance(one, NoAnswer))
        told.append(f"{unanswered:,} steps were not answered, so '{given.out}' is not written; the first: {first}")
        told.append("the same command goes on where this one ended (--partial writes the store as it is)")
    for line in told:
        results_console().print(line, markup=False, highlight=False, soft_wrap=True)
    return 0 if written else 1


def _ask(store: SessionStore, given: RationaleOptions, chat: Chat, instructions: str) -> dict[StepKey, Outcome]:
    outcomes: dict[StepKey, Outcome] = {}
    with progress_bar("asking", _count_lacking(store, given.split)) as advance:
        asked = ask_rationales(
            chat,
            steps_without(store, given.split),
            seed=given.seed,
            at_once=given.concurrency,
            instructions=instructions,
            page_characters=given.page_characters,
            schema=given.schema,
        )
        for key, outcome in asked:
            outcomes[key] = outcome
            advance(1)
    return outcomes


def _count_lacking(store: SessionStore, split: AnySplit) -> int:
    count = 0
    with progress_bar("reading", sum(split in ("all", row.split) for row in store.index())) as advance:
        for session in store.sessions(split):
            count += sum(not step.rationale for step in session.steps)
            advance(1)
    return count


def _server_options(given: RationaleOptions) -> ServerOptions:
    """The part of the options that a chat takes, with a file of answers beside the new store."""
    try:
        extra: Any = json.loads(given.request)
    except ValueError as error:
        raise BadConfig(f"--request is no JSON: {error}") from error
    if not isinstance(extra, dict):
        raise BadConfig("--request must be a JSON object, such as '{\"top_p\": 0.9}'")
    fields = {name: getattr(given, name) for name in ServerOptions.__struct_fields__}
    return ServerOptions(**{**fields, "extra": extra, "cache": given.cache or str(_beside(given.out, "sqlite"))})


def _instructions(file: Path | None) -> str:
    if file is None:
        return INSTRUCTIONS
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"--prompt '{file}' cannot be read as UTF-8 text: {error}") from error


def _beside(out: Path, suffix: str) -> Path:
    return out.with_name(f"{out.name}.rationales.{suffix}")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _write_report(given: RationaleOptions, store: SessionStore, report: Report, remarks: Sequence[str]) -> Path:
    """Writes the report beside the new store."""
    config: Mapping[str, Any] = msgspec.to_builtins(given, enc_hook=str)
    content = {
        "report": msgspec.to_builtins(report),
        "remarks": list(remarks),
        "provenance": provenance(dict(config), store=store, seed=given.seed),
    }
    path = _beside(given.out, "json")
    replace_file(path, msgspec.json.format(msgspec.json.encode(content)) + b"\n")
    return path
