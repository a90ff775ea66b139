"""What verl needs to train a phase of GRPO: `python -m agents.llm_grpo.train … --for-verl PHASE`.

store ─► the phase's steps in its context ─► train.parquet, its order, validation.parquet ─► launch.sh
"""

import shlex
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.training_data import TrainingData, info_of_phase
from replay_sessions.errors import BadConfig, did_you_mean
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file
from shop_env.personas import persona_texts
from train.adapters.verl import overrides, step_rows, write_order, write_rows
from train.checkpoints import CheckpointInfo
from train.grpo.trainer import scored_trunks
from train.models import load_tokenizer
from train.tokens import SessionTokens, tokenize_session

__all__ = ["write_for_verl"]

LAUNCH = """\
#!/bin/sh
# {title}
# More words go over these, for example trainer.nnodes=4. By Megatron: --config-name=ppo_megatron_trainer
# actor_rollout_ref.actor.strategy=megatron, and its own sizes (docs/your_gpu.md).
exec python -m verl.trainer.main_ppo \\
{words} \\
  "$@"
"""


def write_for_verl(config: TrainConfig, store: SessionStore, name: str, folder: Path) -> Iterator[str]:
    """Writes it into `folder`, and tells what is there.

    Raises:
        BadConfig: No such phase of GRPO, a tiny model, or numbers that verl has no counterpart of.
    """
    phase = config.phases.get(name)
    if phase is None or phase.method != "grpo":
        known = [other for other, of in config.phases.items() if of.method == "grpo"]
        raise BadConfig(f"--for-verl {name}: there is no such phase of GRPO. {did_you_mean(name, known)}")
    if config.model.path is None:
        raise BadConfig("--for-verl needs a model that others can load; give --model.path.")
    folder = folder.resolve()  # where Ray's workers look is not where this was called
    grpo, seed = config.grpo_of(name), config.seed + phase.seed
    words = overrides(
        grpo,
        model=config.model.path,
        folder=folder,
        max_tokens=config.model.max_tokens,
        lora=config.model.lora,
        seed=seed,
    )
    tokenizer = load_tokenizer(config.model.path)
    info = info_of_phase(config, store, name)
    told: list[str] = []
    data = TrainingData(store, folder / "tokens", told.append)
    train = scored_trunks(data.trunks(tokenizer, info, teach_rationales=phase.teach_rationales))
    yield from told
    write_order(folder / "train.parquet", train, grpo, seed)
    personas = persona_texts(store, info.context)
    validation = _validation(config, name, store, tokenizer, info, personas)
    for split, trunks in (("train", train), ("validation", validation)):
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
    title = f"{phase.label} of {config.store} in verl 0.9, as `python -m agents.llm_grpo.train` would train it."
    launch = folder / "launch.sh"
    replace_file(launch, LAUNCH.format(title=title, words=" \\\n".join(f"  {_word(*each)}" for each in words.items())))
    launch.chmod(0o755)
    yield f"{launch}: starts it, with verl installed and a Ray cluster or one machine's GPUs"
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
        raise BadConfig(f"'{store.path}' has no validation session to predict, and verl asks for some; split it anew.")
    limit = info.max_tokens - info.max_new_tokens
    trunks = [tokenize_session(tokenizer, one, info.context, config.prompt, limit, personas) for one in sessions]
    return scored_trunks(list(chain.from_iterable(trunks)))


def _word(key: str, value: Any) -> str:
    return shlex.quote(f"{key}={str(value).lower() if isinstance(value, bool) else value}")
