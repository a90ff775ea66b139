"""The train split as tokens: what every phase of a run learns from, tokenised once for each context.

    store ─► observations in a phase's context ─► trunks (train.tokens) ─► tokens-KEY.uint32 (all trunks end to end)
                                                                         · trunks-KEY.json (what else is in them)

A run that resumes finds the files (train/token_cache.py) instead of tokenizing again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agents.llm_grpo.config import PhaseConfig, TrainConfig
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore
from shop_env.observation import ContextConfig, observe, persona_texts
from shop_env.prompts import PromptConfig, render_prompt
from shop_env.reward.matching import unlogged_fields
from train.token_cache import cache_key, cached_trunks
from train.tokens import SessionTokens, tokenize_session


class TrainingData:
    """The training sessions of `store`, tokenised in `folder`; `log` gets a line on how many there are."""

    def __init__(self, config: TrainConfig, store: SessionStore, folder: Path, log: Callable[[str], None]) -> None:
        self._config, self._store, self._folder, self._log = config, store, folder, log
        self._trunks: dict[tuple[ContextConfig, PromptConfig], list[SessionTokens]] = {}

    def trunks(self, phase: PhaseConfig, tokenizer: Any) -> list[SessionTokens]:
        """The sessions as the policy of a phase sees them; logs what did not fit."""
        key = phase.context, self._config.prompt_of(phase, self._store)
        if key not in self._trunks:
            self._trunks[key] = self._read(tokenizer, *key)
        return self._trunks[key]

    def _read(self, tokenizer: Any, context: ContextConfig, prompt: PromptConfig) -> list[SessionTokens]:
        limit = self._config.model.max_prompt_tokens
        # All that the tokens follow from; a prompt names its instructions' file, so a prompt stands for them.
        first = next(iter(self._store.sessions("train")), None)
        instructions = "" if first is None else render_prompt(observe(first, 0), prompt)[0]["content"]
        settings = (context, prompt, limit, self._store.fingerprint)
        key = cache_key(tokenizer.backend_tokenizer.to_str(), tokenizer.chat_template, instructions, settings)

        def tokenize() -> Iterator[SessionTokens]:
            personas = persona_texts(self._store, context)
            for session in self._store.sessions("train"):
                yield from tokenize_session(tokenizer, session, context, prompt, limit, personas)

        trunks = cached_trunks(self._folder, key, tokenize)
        self._log_size(trunks, limit)
        return trunks

    def _log_size(self, trunks: Sequence[SessionTokens], limit: int) -> None:
        ids = self._store.session_ids("train")
        steps = sum(map(self._store.step_count, ids))
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


class RationaleCoverage(NamedTuple):
    """The number of steps of the train split that have a rationale."""

    present: int
    steps: int

    def __str__(self) -> str:
        share = f" ({self.present / self.steps:.0%})" if self.steps else ""
        return f"rationales: {self.present:,} of {self.steps:,} training steps have one{share}"

    def problem(self, config: TrainConfig) -> str | None:
        """Why a run of this configuration is refused; None: it is not."""
        is_refused = config.missing_rationales == "refuse" and config.rewards_rationales
        if not is_refused or 2 * self.present >= self.steps:
            return None
        return (
            f"{self}, and the reward scores rationales. Write those that are missing by `shop-r1 rationales "
            f"--store {config.store} --out …`, or take --reward no_rationale, or train on empty ones by "
            "--missing-rationales empty."
        )


def rationale_coverage(sessions: Iterable[Session]) -> RationaleCoverage:
    """Of training sessions."""
    steps = [bool(step.rationale) for session in sessions for step in session.steps]
    return RationaleCoverage(sum(steps), len(steps))
