"""The train split as tokens: what every phase of a run learns from, tokenised once for each context.

store ─► observations in a phase's context ─► trunks (train.tokens) ─► a file in the run's folder (train.token_cache)
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.store import SessionStore
from shop_env.observation import ContextConfig, observe, persona_texts
from shop_env.prompts import render_prompt
from shop_env.reward.similarity import unlogged_fields
from train.checkpoints import CheckpointInfo
from train.run.config import TrainConfig
from train.token_cache import cache_key, cached_trunks
from train.tokens import SessionTokens, tokenize_session


def first_info(config: TrainConfig, store: SessionStore) -> CheckpointInfo:
    """How the model that a run starts from is prompted."""
    return CheckpointInfo(
        made_by="start",
        store_fingerprint=store.fingerprint,
        context=config.context,
        prompt=config.prompt,
        temperature=config.evaluation.temperature,
        max_new_tokens=config.model.max_new_tokens,
        max_tokens=config.model.max_tokens,
        own_tokenizer=config.model.path is None,
        precision=config.model.computed_in,
    )


def info_of_phase(config: TrainConfig, store: SessionStore, name: str) -> CheckpointInfo:
    """How the policy of a phase is prompted, where nothing was trained yet."""
    return msgspec.structs.replace(first_info(config, store), context=config.context_of(name))


class TrainingData:
    """The training sessions of `store`, tokenised in `folder`; `log` gets a line on how many there are."""

    def __init__(self, store: SessionStore, folder: Path, log: Callable[[str], None]) -> None:
        self._store, self._folder, self._log = store, folder, log
        self._trunks: dict[tuple[ContextConfig, bool, int], list[SessionTokens]] = {}

    def trunks(
        self, tokenizer: Any, info: CheckpointInfo, *, teach_rationales: bool, limit: int | None = None
    ) -> list[SessionTokens]:
        """The sessions as a checkpoint of this kind sees them; logs what did not fit.

        Args:
            limit: The longest prompt, in tokens; None: what the checkpoint's longest path leaves beside a reply.
        """
        if limit is None:
            limit = info.max_tokens - info.max_new_tokens
        key = info.context, teach_rationales, limit
        if key not in self._trunks:
            self._trunks[key] = self._read(tokenizer, info, teach_rationales, limit)
        return self._trunks[key]

    def _read(self, tokenizer: Any, info: CheckpointInfo, teach_rationales: bool, limit: int) -> list[SessionTokens]:
        # All that the tokens follow from; a prompt names its instructions' file, so a prompt stands for them.
        first = next(iter(self._store.sessions("train")), None)
        instructions = "" if first is None else render_prompt(observe(first, 0), info.prompt)[0]["content"]
        settings = (info.context, info.prompt, limit, teach_rationales, self._store.fingerprint)
        key = cache_key(tokenizer.backend_tokenizer.to_str(), tokenizer.chat_template, instructions, settings)

        def tokenize() -> Iterator[SessionTokens]:
            personas = persona_texts(self._store, info.context)
            for session in self._store.sessions("train"):
                yield from tokenize_session(
                    tokenizer, session, info.context, info.prompt, limit, personas, teach_rationales=teach_rationales
                )

        trunks = cached_trunks(self._folder, key, tokenize)
        self._log_size(trunks, limit)
        return trunks

    def _log_size(self, trunks: Sequence[SessionTokens], limit: int) -> None:
        ids = self._store.session_ids("train")
        steps = sum(self._store.step_count(session_id) for session_id in ids)
        included = sum(len(trunk.replies) for trunk in trunks)
        tokens = sum(len(trunk.tokens) for trunk in trunks)
        self._log(f"train split: {len(ids)} sessions, {included} steps, {tokens:,} tokens")
        if cut := [trunk for trunk in trunks if trunk.pages_left_out]:
            sessions, most = len({trunk.session_id for trunk in cut}), max(trunk.pages_left_out for trunk in cut)
            self._log(f"cut: {sessions} sessions above {limit:,} tokens lose up to {most} of their earliest pages")
        if included < steps:
            logged = self._store.sessions("train")
            unlogged = sum(bool(unlogged_fields(step.action)) for session in logged for step in session.steps)
            too_long = f"{steps - included - unlogged} steps whose page does not fit {limit} tokens"
            self._log(f"left out: {too_long}, {unlogged} whose target was not logged")
