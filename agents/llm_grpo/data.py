"""Tokenizes the train split for the phases of a run, once for each context.

    store ─► observations in a phase's context ─► trunks (train.tokens) ─► tokens-KEY.uint32 (all trunks, concatenated)
                                                                         · trunks-KEY.json (their other fields)

A run that resumes finds the files (train/token_cache.py) instead of tokenizing again.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from agents.llm_grpo.config import PhaseConfig, TrainConfig, hyperparameters_table
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.table import Estimate, format_cell
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore
from shop_env.metrics.clustered_errors import estimate, value_error, within_bounds
from shop_env.observation import ContextConfig, observe, persona_texts
from shop_env.prompts import PromptConfig, render_prompt
from shop_env.reward import RewardConfig
from shop_env.reward.ties import sample_ties
from train.chat_template import prompts_grow, template_remarks
from train.config import ModelConfig
from train.contract import check_contract, describe_pages
from train.grpo.config import GrpoConfig
from train.token_cache import cache_key, cached_trunks
from train.tokens import SessionTokens, is_target, tokenize_session

CHECKED_SESSIONS = 3  # whose prompts are checked when a run starts
COUNTED_SESSIONS = 20  # whose pages' tokens are counted then


class TrainingData:
    """The tokenized training sessions of a store.

    Args:
        folder: The folder of the token files.
        log: A function that logs a line; it gets the numbers of sessions, steps and tokens.
    """

    def __init__(self, config: TrainConfig, store: SessionStore, folder: Path, log: Callable[[str], None]) -> None:
        self._config, self._store, self._folder, self._log = config, store, folder, log
        self._trunks: dict[tuple[ContextConfig, PromptConfig], list[SessionTokens]] = {}

    def trunks(self, phase: PhaseConfig, tokenizer: Any) -> list[SessionTokens]:
        """Returns the sessions as the policy of a phase sees them, and logs the shares of steps with cut pages.

        Raises:
            BadConfig: More steps than `model.max_left_out` do not fit.
        """
        key = phase.context, self._config.prompt_of(phase, self._store)
        if key not in self._trunks:
            self._trunks[key] = self._read(phase, tokenizer, key[1])
        return self._trunks[key]

    def _read(self, phase: PhaseConfig, tokenizer: Any, prompt: PromptConfig) -> list[SessionTokens]:
        config, store = self._config, self._store
        # The key covers everything that decides the tokens; the instructions are included because `prompt` only names
        # their file.
        first = next(iter(store.sessions("train")), None)
        instructions = "" if first is None else render_prompt(observe(first, 0), prompt)[0]["content"]
        limit, long_pages = config.model.max_prompt_tokens, config.model.long_pages
        settings = (phase.context, prompt, limit, long_pages, config.inferred, store.fingerprint)
        key = cache_key(tokenizer.backend_tokenizer.to_str(), tokenizer.chat_template, instructions, settings)
        sessions = store.sessions("train")
        trunks = cached_trunks(self._folder, key, lambda: tokenize_sessions(config, phase, store, tokenizer, sessions))
        self._log_size(trunks)
        if cost := describe_trunks(phase.context, tokenizer, trunks):
            self._log(cost)
        return trunks

    def _log_size(self, trunks: Sequence[SessionTokens]) -> None:
        ids = self._store.session_ids("train")
        tokens = sum(len(trunk.tokens) for trunk in trunks)
        steps, included = sum(map(self._store.step_count, ids)), sum(len(trunk.replies) for trunk in trunks)
        self._log(f"train split: {len(ids)} sessions, {included} steps, {tokens:,} tokens")
        targets = target_counts(self._store.sessions("train"), inferred=self._config.inferred)
        if unlogged := steps - sum(targets.values()):
            self._log(f"left out: {unlogged} steps whose action was not logged, or was inferred")
        shares = page_shares(trunks, targets)
        self._log(str(shares))
        if problem := shares.problem(self._config.model):
            raise BadConfig(problem)


def describe_trunks(context: ContextConfig, tokenizer: Any, trunks: Sequence[SessionTokens]) -> str | None:
    """Returns a sentence on the tokens that a chat template costs which gives each step a trunk of its own, or None."""
    if not context.grows_by_appending or prompts_grow(tokenizer):
        return None
    shared: dict[tuple[str, int, int], int] = {}  # the longest trunk of each group that would be one
    for number, trunk in enumerate(trunks):
        key = trunk.session_id, trunk.pages_left_out, number if trunk.page_cut else -1
        shared[key] = max(shared.get(key, 0), len(trunk.tokens))
    tokens = sum(len(trunk.tokens) for trunk in trunks)
    return (
        "chat template: it writes past replies otherwise than behind its generation prompt, so each step has a trunk "
        f"of its own: {tokens:,} tokens in place of {sum(shared.values()):,}"
    )


def check_phases(config: TrainConfig, store: SessionStore, tokenizer: Any, date: str | None = None) -> list[str]:
    """Checks that phases are trained on the prompts that their policies get, on a sample of the train split.

    Returns:
        Sentences on the tokens of pages and on the chat template, which writes `date` if it asks for it.

    Raises:
        BadConfig: The prompts of a step differ, or a page with elements is one token (train/contract.py).
    """
    ids = store.session_ids("train")
    drawn = random.Random(f"{config.seed} contract").sample(ids, min(COUNTED_SESSIONS, len(ids)))
    sessions, model = [store.session(session_id) for session_id in drawn], config.model
    for context, prompt in {(phase.context, config.prompt_of(phase, store)): None for phase in config.phases.values()}:
        personas = persona_texts(store, context)
        limit, checked = model.max_prompt_tokens, sessions[:CHECKED_SESSIONS]
        check_contract(tokenizer, checked, context, prompt, limit, model.long_pages, personas)
    marks = any(phase.context.marks for phase in config.phases.values())
    return [describe_pages(tokenizer, sessions, marks), *template_remarks(tokenizer, date)]


def tokenize_sessions(
    config: TrainConfig, phase: PhaseConfig, store: SessionStore, tokenizer: Any, sessions: Iterable[Session]
) -> Iterator[SessionTokens]:
    """Yields the trunks of a store's sessions as the policy of a phase sees them."""
    model, context, prompt = config.model, phase.context, config.prompt_of(phase, store)
    limit, long_pages, personas = model.max_prompt_tokens, model.long_pages, persona_texts(store, context)
    for session in sessions:
        yield from tokenize_session(
            tokenizer, session, context, prompt, limit, personas, long_pages, inferred=config.inferred
        )


def target_counts(sessions: Iterable[Session], *, inferred: bool) -> dict[str, int]:
    """Counts each session's steps that are targets, by session id."""
    return {
        session.session_id: sum(is_target(step, inferred=inferred) for step in session.steps) for session in sessions
    }


class PageShares(NamedTuple):
    """The shares of target steps that lose pages, because sessions are too long for the model.

    Attributes:
        steps: The number of target steps.
        page_cut: The share of steps that show a window of their own page.
        target_shown: The share of steps whose prompt shows the logged action's element, or that need none.
        pages_lost: The share of steps that show nothing of some earlier page; it overlaps with `page_cut`.
        left_out: The share of steps that do not fit.
    """

    steps: int
    page_cut: Estimate
    target_shown: Estimate
    pages_lost: Estimate
    left_out: Estimate

    def __str__(self) -> str:
        cut, shown, lost, left_out = (format_cell(share, "percent") for share in self[1:])
        return (
            f"pages: {cut}% of {self.steps:,} steps show a window of their own page, {shown}% the target, {lost}% lost "
            f"earlier pages, {left_out}% are left out, being too long"
        )

    def problem(self, model: ModelConfig) -> str | None:
        """Returns the reason why a run with this model is refused, or None."""
        if self.left_out.value <= model.max_left_out:
            return None
        return (
            f"{self.left_out.value:.0%} of the training steps do not fit {model.max_prompt_tokens:,} tokens, and more "
            f"than {model.max_left_out:.0%} may not be left out. Cut their pages by --model.long-pages shorten, raise "
            "--model.max-tokens, or leave them out by --model.max-left-out 1."
        )


def page_shares(trunks: Sequence[SessionTokens], targets: Mapping[str, int], *, is_sample: bool = False) -> PageShares:
    """Computes the shares of steps that lose pages.

    Args:
        targets: The number of target steps of each session (target_counts).
        is_sample: Whether the sessions are a sample, so that the shares get intervals over sessions.
    """
    numbers = {session_id: number for number, session_id in enumerate(targets)}
    counts = np.zeros((len(targets), 4))
    counts[:, 3] = sizes = np.array([*targets.values()], dtype=np.float64)
    for trunk in trunks:
        for reply in trunk.replies:
            hits = (trunk.page_cut, reply.target_shown, trunk.pages_left_out > 0, -1)
            counts[numbers[trunk.session_id]] += hits
    total = max(1.0, sizes.sum())
    shares = [Estimate(float(value)) for value in counts.sum(axis=0) / total]
    if is_sample:
        shares = [
            within_bounds(
                estimate(share.value, value_error((row - share.value * sizes) / total, sizes / total)), (0, 1)
            )
            for row, share in zip(counts.T, shares, strict=True)
        ]
    return PageShares(int(sizes.sum()), *shares)


def phase_warnings(name: str, phase: PhaseConfig, steps: int, validation_sessions: int) -> Iterator[str]:
    """Yields a line on a phase whose warm-up takes most of its steps, and on one whose weights are not chosen.

    Args:
        name: The name of the phase.
        phase: The phase.
        steps: The number of its training steps.
        validation_sessions: The number of sessions of the validation split.
    """
    hyperparameters = phase.hyperparameters
    if hyperparameters is None or not steps:
        return
    updates = steps * hyperparameters.num_iterations if isinstance(hyperparameters, GrpoConfig) else steps
    if hyperparameters.optimizer.has_long_warmup(updates):
        flag = f"--phases.{name.replace('_', '-')}.{hyperparameters_table(phase.method)}.optimizer.warmup-steps"
        warmup = min(updates, hyperparameters.optimizer.warmup_steps)
        yield (
            f"warning: {name}: {warmup} of {updates} steps are warm-up, more than a tenth. Give {flag} "
            f"{updates // 10}, or train for longer (for OPeRA: presets opera_one_gpu, opera_8_gpus)."
        )
    if not (phase.validation.times and validation_sessions):
        reason = "the validation split has no sessions" if phase.validation.times else "validation.times is 0"
        yield f"No validation, because {reason}: a phase keeps the weights of its last step."


def tie_lines(config: TrainConfig, store: SessionStore) -> Iterator[str]:
    """Yields for each reward of GRPO how often it pays another element of a training page like the logged one."""
    phases: dict[str, tuple[RewardConfig, list[str]]] = {}
    for name, phase in config.phases.items():
        if isinstance(phase.hyperparameters, GrpoConfig):
            reward = phase.get_reward(config.reward_config)
            phases.setdefault(repr(reward), (reward, []))[1].append(name)
    train = msgspec.structs.replace(config.evaluation_config, split="train", sessions=None)
    steps = train.keys(store) if phases else []
    for reward, names in phases.values():
        if ties := sample_ties(store, steps, reward):
            yield f"{'warning: ' if ties.are_many else ''}{', '.join(names)}: {ties.text}"


class RationaleCoverage(NamedTuple):
    """The number of steps of the train split that have a rationale."""

    present: int
    steps: int

    def __str__(self) -> str:
        share = f" ({self.present / self.steps:.0%})" if self.steps else ""
        return f"rationales: {self.present:,} of {self.steps:,} training steps have one{share}"

    def describe(self, config: TrainConfig) -> str:
        """Returns a line for the log, with the flag for a log without rationales if prompts ask for them."""
        if self.present or not any(map(config.writes_rationales, config.phases.values())):
            return str(self)
        return (
            f"{self}; with --prompt.no-rationales prompts ask for none, and tables begin with the most probable action"
        )

    def problem(self, config: TrainConfig) -> str | None:
        """Returns the reason why a run of this configuration is refused, or None."""
        is_refused = config.missing_rationales == "refuse" and config.rewards_rationales
        if not is_refused or 2 * self.present >= self.steps:
            return None
        return (
            f"{self}, and the reward scores rationales. Write those that are missing by `shop-r1 rationales "
            f"--store {config.store} --out …`, or take --reward no_rationale, or train on empty ones by "
            "--missing-rationales empty."
        )


def rationale_coverage(sessions: Iterable[Session], *, inferred: bool) -> RationaleCoverage:
    """Counts the steps of training sessions that have a rationale, with or without inferred actions."""
    steps = [bool(step.rationale) for session in sessions for step in session.steps if inferred or not step.is_inferred]
    return RationaleCoverage(sum(steps), len(steps))
