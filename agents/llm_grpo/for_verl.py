"""What verl needs to train a phase of GRPO: `python -m agents.llm_grpo.train … --for-verl PHASE`.

store ─► the phase's steps in its context ─► train.parquet, its order, validation.parquet ─► launch.sh
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.written_steps import handed_over, told_of_start, write_phase
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file
from train.adapters.verl import overrides

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
    phase = handed_over(config, name, "--for-verl")
    folder = folder.resolve()  # where Ray's workers look is not where this was called
    grpo, seed = config.grpo_of(name), config.seed + phase.seed
    words = overrides(
        grpo,
        model=str(config.model.path),
        folder=folder,
        max_tokens=config.model.max_tokens,
        lora=config.model.lora,
        seed=seed,
    )
    yield from write_phase(config, store, name, folder, validation=True)
    title = f"{phase.label} of {config.store} in verl 0.9, as `python -m agents.llm_grpo.train` would train it."
    launch = folder / "launch.sh"
    replace_file(launch, LAUNCH.format(title=title, words=" \\\n".join(f"  {_word(*each)}" for each in words.items())))
    launch.chmod(0o755)
    yield f"{launch}: starts it, with verl installed and a Ray cluster or one machine's GPUs"
    yield from told_of_start(phase, name)


def _word(key: str, value: Any) -> str:
    return shlex.quote(f"{key}={str(value).lower() if isinstance(value, bool) else value}")
