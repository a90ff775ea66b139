"""What TRL needs to train a phase of GRPO: `python -m agents.llm_grpo.train … --for-trl PHASE`.

store ─► the phase's steps in its context ─► train.parquet, its order ─► trl.json ─► accelerate launch
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.written_steps import handed_over, told_of_start, write_phase
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file
from train.adapters.trl import RUN_FILE, trl_run

__all__ = ["write_for_trl"]


def write_for_trl(config: TrainConfig, store: SessionStore, name: str, folder: Path) -> Iterator[str]:
    """Writes it into `folder`, and tells what is there.

    Raises:
        BadConfig: No such phase of GRPO, a tiny model, or numbers that TRL has no counterpart of.
    """
    phase = handed_over(config, name, "--for-trl")
    run = trl_run(
        config.grpo_of(name),
        model=str(config.model.path),
        folder=folder,
        max_tokens=config.model.max_tokens,
        halved=config.model.computed_in == "bfloat16_autocast",
        recomputed=config.model.gradient_checkpointing,
        lora=config.model.lora,
        seed=config.seed + phase.seed,
    )
    yield from write_phase(config, store, name, folder, validation=False)
    replace_file(folder / RUN_FILE, msgspec.json.format(msgspec.json.encode(run)))
    yield f"{folder / RUN_FILE}: the phase's numbers by TRL's names"
    yield f"To train, with TRL installed: accelerate launch -m train.adapters.trl_trainer {folder}"
    yield from told_of_start(phase, name)
