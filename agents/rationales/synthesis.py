"""Requests every rationale that a store lacks, then writes a new version of the store with them.

    SessionStore ─► steps without a rationale ─► Chat, in threads ─► replies ─► Outcome of each step ─► StoreWriter

Requests and writing are separate: a store is written completely or not at all, and every reply is in a file beside it.
So a command that was killed during the requests continues with the missing ones, and a command that was killed during
the writing only writes again.
"""

import hashlib
from collections import deque
from collections.abc import Mapping
from contextlib import closing

import msgspec

from agents.prompting.chat import Chat, NoAnswer
from agents.prompting.formats import texts_format
from agents.rationales.report import Outcome, report_table
from agents.rationales.request import INSTRUCTIONS, RationaleOptions, parse_rationale, rationale_messages
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.locks import working_alone_in
from replay_sessions.foundation.progress import track
from replay_sessions.foundation.table import print_results
from replay_sessions.schema import Session, Step
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.work_folder import check_target
from shop_env.evaluation.generate import map_in_threads
from shop_env.evaluation.scored_steps import StepKey
from shop_env.evaluation.steps_file import StepLine, StepsFile, prepare
from shop_env.prompts import read_instructions


def synthesise(options: RationaleOptions) -> int:
    """Runs the command and returns its exit code: 1 if the store is not written because steps have no reply."""
    store = SessionStore.open(options.store)
    if options.out.resolve() == store.path.resolve():
        raise BadConfig(f"--out {options.out} is the store itself: choose another path for the new version")
    check_target(options.out, overwrite=options.overwrite)  # before the work, not after
    instructions = read_instructions(str(options.prompt), "--prompt") if options.prompt else INSTRUCTIONS[options.by]
    alone = working_alone_in(options.out.parent, f".{options.out.name}.rationales.lock", target=options.out)
    with alone, closing(Chat(options)) as chat:
        outcomes = _request_all(store, options, chat, instructions)
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, NoAnswer)]
    lines = chat.remarks()
    is_written = not failures or options.partial
    if is_written:
        _write_store(store, options, outcomes, instructions)
        lines.append(f"written: {options.out}")
    else:
        lines += [
            f"{len(failures):,} steps have no reply, so '{options.out}' is not written: {failures[0]}",
            "the same command continues where this one ended (--partial writes the store as it is)",
        ]
    print_results(report_table(store.sessions(options.split), outcomes), *lines)
    return 0 if is_written else 1


def _request_all(
    store: SessionStore, options: RationaleOptions, chat: Chat, instructions: str
) -> dict[StepKey, Outcome]:
    """Requests the missing rationales, saves each reply at once, and returns each step's outcome."""
    by_session = options.by == "session"

    def ask(step: tuple[Session, int]) -> tuple[StepKey, str | NoAnswer]:
        session, index = step
        key = session.session_id, index
        messages = rationale_messages(session, None if by_session else index, instructions, options.page_characters)
        names = [str(number + 1) for number in range(len(session.steps))] if by_session else ["rationale"]
        fields = {"response_format": texts_format(names)} if options.schema else {}
        try:
            return key, chat.ask(messages, seed=options.seed, **fields).text
        except NoAnswer as failure:
            return key, failure

    identity = {
        "store": store.fingerprint,
        "base_url": options.base_url,
        "messages": [options.by, instructions, options.page_characters],
        "request": {"model": options.model, "schema": options.schema, **options.request_fields(options.seed)},
    }
    path = options.out.with_name(f"{options.out.name}.rationales.jsonl")
    prepare(path, identity, {}, fresh=False, retry_errors=True)
    with StepsFile(path) as replies:
        missing = [
            (session.session_id, index)
            for session in store.sessions(options.split)
            for index, step in enumerate(session.steps)
            if not step.rationale
        ]
        # The key of the reply of each step: the session's first step if a request covers the session.
        reply_keys = {key: (key[0], 0) if by_session else key for key in missing}
        unanswered = set(reply_keys.values()) - replies.lines.keys()
        steps = (
            deque([(session, index)])
            for session in store.sessions(options.split)
            for index in range(len(session.steps))
            if (session.session_id, index) in unanswered
        )
        failures: dict[StepKey, NoAnswer] = {}
        for key, reply in track(map_in_threads(ask, steps, options.concurrency), "asking", len(unanswered)):
            if isinstance(reply, NoAnswer):
                failures[key] = reply
            else:
                replies.write(StepLine(session_id=key[0], step_index=key[1], observation="", reply=reply))
        return {
            key: failures.get(reply_key)
            or parse_rationale(replies.lines[reply_key].reply or "", str(key[1] + 1) if by_session else "rationale")
            for key, reply_key in reply_keys.items()
        }


def _write_store(
    store: SessionStore, options: RationaleOptions, outcomes: Mapping[StepKey, Outcome], instructions: str
) -> None:
    """Writes the store with the new rationales; all other rationales, pages and actions are unchanged."""
    manifest = store.manifest
    digest = hashlib.blake2b(instructions.encode(), digest_size=8).hexdigest()

    def with_rationale(step: Step, outcome: Outcome | None) -> Step:
        if not isinstance(outcome, str):
            return step
        return msgspec.structs.replace(step, rationale=outcome, rationale_source=options.model)

    with StoreWriter(
        options.out,
        source=manifest.source,
        splits=manifest.split_plan,
        options={**manifest.options, "rationales_by": options.model, "rationales_prompt": digest},
        overwrite=options.overwrite,
    ) as writer:
        writer.carry_over(store.path, manifest)
        for session in track(store.sessions(), "writing", len(store)):
            steps = tuple(
                with_rationale(step, outcomes.get((session.session_id, index)))
                for index, step in enumerate(session.steps)
            )
            writer.write(msgspec.structs.replace(session, steps=steps))
