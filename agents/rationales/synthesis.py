"""Asks for every rationale that a store lacks, then writes the store anew with those that came.

    SessionStore ─► steps without a rationale ─► Chat, many at once ─► Outcome of each ─► StoreWriter ─► new store

Asking and writing are apart: a store is written whole or not at all, and what was answered is kept by the chat's
account, so a run that was killed while asking goes on there, and one that was killed while writing only writes.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from agents.asking import in_threads
from agents.prompting.chat import Chat
from agents.prompting.failures import NoAnswer
from agents.rationales.request import NoRationale, rationale_in, rationale_request
from agents.scored_steps import AnySplit, StepKey
from replay_sessions.schema import Session, Step
from replay_sessions.store import SessionStore, StoreWriter

__all__ = ["Outcome", "ask_rationales", "steps_without", "write_store"]

Outcome = str | NoRationale | NoAnswer


def steps_without(store: SessionStore, split: AnySplit) -> Iterator[tuple[Session, int]]:
    """The steps of a split without a rationale."""
    for session in store.sessions(split):
        for index, step in enumerate(session.steps):
            if not step.rationale:
                yield session, index


def ask_rationales(
    chat: Chat, steps: Iterator[tuple[Session, int]], *, seed: int, at_once: int, **how: Any
) -> Iterator[tuple[StepKey, Outcome]]:
    """What the model says of each step, as it comes. Ctrl-C goes through, and what is under way is kept.

    Args:
        seed: What is drawn follows from it, where the model draws.
        how: As `rationale_request` takes it.
    """

    def ask(step: tuple[Session, int]) -> tuple[StepKey, Outcome]:
        session, index = step
        try:
            found: Outcome = rationale_in(chat.ask(rationale_request(session, index, **how), seed=seed))
        except NoAnswer as failure:
            found = failure
        return (session.session_id, index), found

    try:
        yield from in_threads(ask, steps, at_once)
    except BaseException:
        chat.stop()
        raise


def write_store(
    store: SessionStore,
    path: Path,
    outcomes: Mapping[StepKey, Outcome],
    *,
    written_by: str,
    options: Mapping[str, str],
    overwrite: bool,
    on_progress: Callable[[int], None],
) -> SessionStore:
    """Writes the store with the rationales that came; every other rationale, page and action is as it was.

    Args:
        written_by: The `rationale_source` of the new ones.
        options: What the manifest says beside what it said before.
    """
    manifest = store.manifest
    with StoreWriter(
        path,
        source=manifest.source,
        splits=manifest.split_plan,
        options={**manifest.options, **options},
        overwrite=overwrite,
    ) as writer:
        writer.carry_over(store.path, manifest)
        for session in store.sessions():
            steps = tuple(
                _with(step, outcomes.get((session.session_id, index)), written_by)
                for index, step in enumerate(session.steps)
            )
            writer.write(msgspec.structs.replace(session, steps=steps))
            on_progress(1)
    return SessionStore.open(path)


def _with(step: Step, outcome: Outcome | None, written_by: str) -> Step:
    if not isinstance(outcome, str) or step.rationale:
        return step
    return msgspec.structs.replace(step, rationale=outcome, rationale_source=written_by)
