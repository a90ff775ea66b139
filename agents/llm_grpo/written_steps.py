"""The steps of a phase of GRPO as files that other trainers read, and what is told of them (for_verl.py, for_trl.py).

store ─► the phase's steps in its context ─► train.parquet, its order, and validation.parquet where it is asked for
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from agents.llm_grpo.config import PhaseConfig, TrainConfig
from agents.llm_grpo.training_data import TrainingData, info_of_phase
from replay_sessions.errors import BadConfig, did_you_mean
from replay_sessions.store import SessionStore
from shop_env.personas import persona_texts
from train.adapters.steps import step_rows, write_order, write_rows
from train.checkpoints import CheckpointInfo
from train.grpo.trainer import scored_trunks
from train.models import load_tokenizer
from train.tokens import SessionTokens, tokenize_session

__all__ = ["handed_over", "told_of_start", "write_phase"]


def handed_over(config: TrainConfig, name: str, flag: str) -> PhaseConfig:
    """The phase of GRPO that `flag` names.

    Raises:
        BadConfig: There is no such phase, or its model is a tiny one.
    """
    phase = config.phases.get(name)
    if phase is None or phase.method != "grpo":
        known = [other for other, of in config.phases.items() if of.method == "grpo"]
        raise BadConfig(f"{flag} {name}: there is no such phase of GRPO. {did_you_mean(name, known)}")
    if config.model.path is None:
        raise BadConfig(f"{flag} needs a model that others can load; give --model.path.")
    return phase


def write_phase(
    config: TrainConfig, store: SessionStore, name: str, folder: Path, *, validation: bool
) -> Iterator[str]:
    """Writes a phase's steps into `folder`, and tells what is there.

    Raises:
        BadConfig: Nothing to learn from or to validate on, or batches of whole sessions.
    """
    phase, grpo = config.phases[name], config.grpo_of(name)
    tokenizer = load_tokenizer(str(config.model.path))
    info = info_of_phase(config, store, name)
    told: list[str] = []
    data = TrainingData(store, folder / "tokens", told.append)
    splits = {"train": scored_trunks(data.trunks(tokenizer, info, teach_rationales=phase.teach_rationales))}
    yield from told
    write_order(folder / "train.parquet", splits["train"], grpo, config.seed + phase.seed)
    personas = persona_texts(store, info.context)
    if validation:
        splits["validation"] = _validation(config, name, store, tokenizer, info, personas)
    for split, trunks in splits.items():
        rows = step_rows(
            store.session,
            tokenizer,
            trunks,
            info.context,
            config.prompt,
            config.reward_of(name),
            max_prompt_tokens=info.max_tokens - info.max_new_tokens,
            personas=personas,
        )
        count = sum(len(trunk.replies) for trunk in trunks)
        write_rows(folder / f"{split}.parquet", rows, count, split)
        yield f"{folder / f'{split}.parquet'}: {count:,} steps"


def told_of_start(phase: PhaseConfig, name: str) -> Iterator[str]:
    """That a phase begins with other weights than the run's first, where it does."""
    if phase.start != "model":
        yield (
            f"'{name}' starts from '{phase.start}', and --model.path is what it begins with here: give a checkpoint "
            f"of '{phase.start}' there."
        )


def _validation(
    config: TrainConfig,
    name: str,
    store: SessionStore,
    tokenizer: Any,
    info: CheckpointInfo,
    personas: Mapping[str, str] | None,
) -> list[SessionTokens]:
    rule = config.phases[name].validation or config.validation
    sessions = [store.session(session_id) for session_id in store.session_ids("validation")[: rule.sessions]]
    if all(len(session.steps) < 2 for session in sessions):
        raise BadConfig(
            f"'{store.path}' has no validation session to predict, and the trainer asks for some; split it anew."
        )
    limit = info.max_tokens - info.max_new_tokens
    trunks = [tokenize_session(tokenizer, one, info.context, config.prompt, limit, personas) for one in sessions]
    return scored_trunks(list(chain.from_iterable(trunks)))
