"""Requests every rationale that a store lacks, then writes a new version of the store with them.

    SessionStore ─► Requests (steps without a rationale) ─► Chat, in threads ─► replies ─► Outcome of each step
        ─► StoreWriter

Requests and writing are separate: a store is written completely or not at all, and every reply is in a file beside it.
So a command that was killed during the requests continues with the missing ones, and a command that was killed during
the writing only writes again.
"""

import hashlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from agents.prompting.chat import Chat, NoAnswer
from agents.prompting.formats import texts_format
from agents.rationales.report import Outcome, report_table
from agents.rationales.request import (
    INSTRUCTIONS,
    NoRationale,
    RationaleOptions,
    parse_rationale,
    rationale_messages,
)
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.locks import working_alone_in
from replay_sessions.foundation.progress import track
from replay_sessions.foundation.table import print_results
from replay_sessions.schema import Session, Step
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import WrittenRationales
from replay_sessions.store.splits import SPLITS
from replay_sessions.store.work_folder import check_target
from shop_env.evaluation.scored_steps import StepKey
from shop_env.evaluation.steps_file import StepLine, StepsFile, prepare, read_identity
from shop_env.evaluation.waves import map_in_threads
from shop_env.prompts import Message, read_instructions

CHARACTERS_PER_TOKEN = 2.89  # of Qwen2.5 on pages, as in agents/llm_grpo/character_tokens.py, which loads transformers
_TOKENS_PER_RATIONALE = 30
_PREVIEW_CHARACTERS = 600


class Requests:
    """The steps of a store without a rationale, and the requests about them.

    Attributes:
        identity: Everything that decides the replies.
        reply_keys: For each step without a rationale, the key of its reply: the session's first step if a request
            covers the session.
    """

    def __init__(self, store: SessionStore, options: RationaleOptions) -> None:
        self.store, self.options, self.by_session = store, options, options.by == "session"
        prompt = options.prompt
        self.instructions = read_instructions(str(prompt), "--prompt") if prompt else INSTRUCTIONS[options.by]
        self.identity = {
            "store": store.fingerprint,
            "base_url": options.base_url,
            "model": options.model,
            "by": options.by,
            "prompt": self.instructions,
            "page_characters": options.page_characters,
            "schema": options.schema,
            "request fields": options.request_fields(options.seed),
        }
        self.reply_keys = {
            (session.session_id, index): (session.session_id, 0 if self.by_session else index)
            for session in store.sessions(options.split)
            for index, step in enumerate(session.steps)
            if not step.rationale
        }

    def unanswered(self, answered: Collection[StepKey]) -> set[StepKey]:
        """Returns the keys of the replies that are missing."""
        return {*self.reply_keys.values()}.difference(answered)

    def steps(self, keys: Collection[StepKey]) -> Iterator[tuple[Session, int]]:
        """Yields the session and the index of each of these keys."""
        for session in self.store.sessions(self.options.split):
            yield from ((session, index) for index in range(len(session.steps)) if (session.session_id, index) in keys)

    def messages(self, session: Session, index: int) -> list[Message]:
        index_or_all = None if self.by_session else index
        return rationale_messages(session, index_or_all, self.instructions, self.options.page_characters)

    def response_format(self, session: Session) -> dict[str, Any]:
        names = [str(number + 1) for number in range(len(session.steps))] if self.by_session else ["rationale"]
        return {"response_format": texts_format(names)} if self.options.schema else {}

    def outcome(self, key: StepKey, reply: str) -> str | NoRationale:
        """Parses the rationale of a step from its reply."""
        return parse_rationale(reply, str(key[1] + 1) if self.by_session else "rationale")


def synthesise(options: RationaleOptions) -> int:
    """Runs the command and returns its exit code: 1 if the store is not written because steps have no reply."""
    store = SessionStore.open(options.store)
    if options.out.resolve() == store.path.resolve():
        raise BadConfig(f"--out {options.out} is the store itself: choose another path for the new version")
    check_target(options.out, overwrite=options.overwrite)  # before the work, not after
    requests = Requests(store, options)
    replies_path = options.out.with_name(f"{options.out.name}.rationales.jsonl")
    if options.dry_run:
        print_results(*_describe(requests, replies_path))
        return 0
    alone = working_alone_in(options.out.parent, f".{options.out.name}.rationales.lock", target=options.out)
    with alone, closing(Chat(options)) as chat:
        outcomes = _request_all(requests, chat, replies_path)
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, NoAnswer)]
    lines = chat.remarks()
    unread = [outcome for outcome in outcomes.values() if isinstance(outcome, NoRationale)]
    has_none = bool(unread) and len(unread) == len(outcomes)
    is_written = options.partial or not (failures or has_none)
    if is_written:
        _write_store(requests, outcomes)
        lines.append(f"written: {options.out}")
    elif has_none:
        lines.append(
            f"no reply has a rationale, so '{options.out}' is not written (--partial writes it): the first is "
            f"{unread[0].text:.200}; try --schema, or another --model. Replies: {replies_path}"
        )
    else:
        lines += [
            f"{len(failures):,} steps have no reply, so '{options.out}' is not written: {failures[0]}",
            "the same command continues where this one ended (--partial writes the store as it is)",
        ]
    print_results(report_table(store.sessions(options.split), outcomes), *lines)
    return 0 if is_written else 1


def _describe(requests: Requests, replies_path: Path) -> Iterator[str]:
    """Yields lines about the requests that would be sent, and the first of them."""
    options, answered = requests.options, set[StepKey]()
    if read_identity(replies_path) == msgspec.to_builtins(requests.identity):
        with StepsFile(replies_path) as replies:
            answered = set(replies.lines)
    keys = requests.unanswered(answered)
    steps = sum(key in keys for key in requests.reply_keys.values())
    yield (
        f"{len(keys):,} requests to {options.base_url}, model {options.model}, for {steps:,} steps without a rationale "
        f"(split {options.split})"
    )
    pages = "all pages and actions of a session" if requests.by_session else "a page, its action and earlier actions"
    yield (
        f"A request has the instructions and {pages} (at most {options.page_characters:,} characters of a page), and "
        "none of the log's ids, personas, goals, URLs and times."
    )
    characters, preview = 0, ""
    for step in requests.steps(keys):
        messages = requests.messages(*step)
        preview = preview or "\n".join(
            f"  {each['role']}: {each['content'][:_PREVIEW_CHARACTERS]}" for each in messages
        )
        characters += sum(len(message["content"]) for message in messages)
    yield (
        f"About {characters / CHARACTERS_PER_TOKEN:,.0f} tokens to read ({characters:,} characters) and "
        f"{steps * _TOKENS_PER_RATIONALE:,} to write."
    )
    yield f"The first request begins:\n{preview}" if preview else "There is no request to send."
    yield "Nothing was sent."


def _request_all(requests: Requests, chat: Chat, replies_path: Path) -> dict[StepKey, Outcome]:
    """Requests the missing rationales, saves each reply at once, and returns each step's outcome."""
    options = requests.options

    def ask(step: tuple[Session, int]) -> tuple[StepKey, str | NoAnswer]:
        session, index = step
        key = session.session_id, index
        try:
            fields = requests.response_format(session)
            return key, chat.ask(requests.messages(session, index), seed=options.seed, **fields).text
        except NoAnswer as failure:
            return key, failure

    earlier = read_identity(replies_path)
    if moved := prepare(replies_path, requests.identity, {}, fresh=False, retry_errors=True):
        reason = "The earlier replies cannot be read"
        if earlier is not None:
            changed = (name for name, value in requests.identity.items() if earlier.get(name) != value)
            reason = f"Changed since the last call: {', '.join(changed)}"
        print_results(f"{reason}. Its replies are not used; they are in {moved}.")
    with StepsFile(replies_path) as replies:
        unanswered = requests.unanswered(replies.lines)
        steps = (deque([step]) for step in requests.steps(unanswered))
        failures: dict[StepKey, NoAnswer] = {}
        for key, reply in track(map_in_threads(ask, steps, options.concurrency), "asking", len(unanswered)):
            if isinstance(reply, NoAnswer):
                failures[key] = reply
            else:
                replies.write(StepLine(session_id=key[0], step_index=key[1], observation="", reply=reply))
        return {
            key: failures.get(reply_key) or requests.outcome(key, replies.lines[reply_key].reply or "")
            for key, reply_key in requests.reply_keys.items()
        }


def _write_store(requests: Requests, outcomes: Mapping[StepKey, Outcome]) -> None:
    """Writes the store with the new rationales; all other rationales, pages and actions are unchanged."""
    store, options = requests.store, requests.options
    manifest = store.manifest
    written = {session_id for (session_id, _), outcome in outcomes.items() if isinstance(outcome, str)}

    def with_rationale(step: Step, outcome: Outcome | None) -> Step:
        if not isinstance(outcome, str):
            return step
        return msgspec.structs.replace(step, rationale=outcome, rationale_source=options.model)

    with StoreWriter(
        options.out,
        source=manifest.source,
        splits=manifest.split_plan,
        options=manifest.options,
        overwrite=options.overwrite,
    ) as writer:
        writer.carry_over(store.path, manifest)
        if written:
            run = WrittenRationales(
                model=options.model,
                by=options.by,
                splits=tuple(split for split in SPLITS if written.intersection(store.session_ids(split))),
                prompt=hashlib.blake2b(requests.instructions.encode(), digest_size=8).hexdigest(),
            )
            writer.rationales.append(run)
        for session in track(store.sessions(), "writing", len(store)):
            steps = tuple(
                with_rationale(step, outcomes.get((session.session_id, index)))
                for index, step in enumerate(session.steps)
            )
            writer.write(msgspec.structs.replace(session, steps=steps))
