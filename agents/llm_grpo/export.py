"""Exports a phase of GRPO to another trainer: `shop-r1 train --for-trl|--for-verl PHASE`.

store ─► the phase's steps in its context ─► train.parquet, its order ─┬─► trl.json ─► accelerate launch
                                                                       └─► validation.parquet, launch.sh ─► verl
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from agents.llm_grpo.config import PhaseConfig, TrainConfig
from agents.llm_grpo.data import TrainingData, check_phases, tokenize_sessions
from agents.llm_grpo.training_run import phase_info
from replay_sessions.foundation.durable_files import replace_file, replace_json
from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.table import Table
from replay_sessions.store import SessionStore
from shop_env.evaluation.scored_steps import draw_sessions
from shop_env.observation import persona_texts
from shop_env.replies import extraction_of
from train.adapters.steps import step_rows, write_order, write_rows
from train.adapters.trl import RUN_FILE, trl_run
from train.adapters.verl import WITHOUT_VALIDATION, overrides
from train.chat_template import today, writes_date
from train.checkpoints import CHECKPOINT_FILE, write_info
from train.grpo.config import GrpoConfig
from train.grpo.trainer import scored_trunks
from train.models import load_tokenizer

LAUNCH = """\
#!/bin/sh
# {title}
# Further arguments override these, for example trainer.nnodes=4. By Megatron: --config-name=ppo_megatron_trainer
# actor_rollout_ref.actor.strategy=megatron, and its own sizes (docs/your_gpu.md).
exec python -m verl.trainer.main_ppo \\
{words} \\
  "$@"
"""


def export_phase(
    config: TrainConfig, store: SessionStore, trainer: Literal["trl", "verl"], name: str, folder: Path
) -> Iterator[Table | str]:
    """Writes a phase for another trainer into `folder`, and yields a line for each file.

    Raises:
        BadConfig: The run has no such phase of GRPO, its model is trained from scratch, or the trainer has no
            counterpart of some number.
    """
    phase, model = config.phases.get(name), config.model
    if phase is None or phase.method != "grpo" or phase.grpo is None:
        names = [other for other, candidate in config.phases.items() if candidate.method == "grpo"]
        raise BadConfig(f"--for-{trainer} {name}: there is no such phase of GRPO. {did_you_mean(name, names)}")
    if model.path is None:
        raise BadConfig(f"--for-{trainer} needs a model that others can load; give --model.path.")
    grpo, seed = _in_steps(config, store, phase, phase.grpo, folder), config.seed + phase.seed
    if trainer == "trl":
        run = trl_run(grpo, model, folder, seed=seed)
        yield from _write_steps(config, store, phase, grpo, folder)
        replace_json(folder / RUN_FILE, run)
        yield f"{folder / RUN_FILE}: the phase's numbers by TRL's names"
        yield f"To train, with TRL installed: accelerate launch -m train.adapters.trl_train {folder}"
    else:
        folder = folder.resolve()  # because Ray's workers run in another folder
        yield from _write_steps(config, store, phase, grpo, folder, validation=True)
        write_info(folder, phase_info(config, store, name, template_date=None))
        yield f"{folder / CHECKPOINT_FILE}: how `rank` prompts the checkpoints that verl will save"
        words = overrides(grpo, model, folder, seed=seed)
        if not store.session_ids("validation"):
            words |= WITHOUT_VALIDATION
        yield _write_launch(config, phase, words, folder)
    if phase.start != "model":
        yield (
            f"'{name}' starts from '{phase.start}', and --model.path is what it begins with here: give a checkpoint "
            f"of '{phase.start}' there."
        )


def _write_launch(config: TrainConfig, phase: PhaseConfig, words: dict[str, Any], folder: Path) -> str:
    """Writes the script that starts verl, and returns a line for it."""
    label = phase.label
    if phase.get_reward(config.reward_config).self_certainty_weight:
        label += " without self-certainty (verl shows the reward no distribution of the policy)"
    launch = folder / "launch.sh"
    lines = " \\\n".join(f"  {_word(*pair)}" for pair in words.items())
    replace_file(launch, LAUNCH.format(title=f"In verl 0.9, on {config.store}: {label}.", words=lines))
    launch.chmod(0o755)
    return f"{launch}: starts {label}, with verl installed and a Ray cluster or one machine's GPUs"


def _word(key: str, value: Any) -> str:
    return shlex.quote(f"{key}={str(value).lower() if isinstance(value, bool) else value}")


def _in_steps(
    config: TrainConfig, store: SessionStore, phase: PhaseConfig, grpo: GrpoConfig, folder: Path
) -> GrpoConfig:
    """Returns the numbers of a phase with its length in steps; for one in epochs the steps are tokenized first."""
    if grpo.epochs is None:
        return grpo
    data = TrainingData(config, store, folder / "tokens", lambda _: None)
    return grpo.in_steps(scored_trunks(data.trunks(phase, _load_tokenizer(config))))


def _load_tokenizer(config: TrainConfig) -> Any:
    variables = config.model.template_variables
    return load_tokenizer(str(config.model.path), template_variables=variables, template_date=today())


def _write_steps(
    config: TrainConfig,
    store: SessionStore,
    phase: PhaseConfig,
    grpo: GrpoConfig,
    folder: Path,
    *,
    validation: bool = False,
) -> Iterator[str]:
    """Writes the steps of a phase as rows of parquet files, and yields a line for each file.

    Raises:
        BadConfig: A split has no steps, or the batches of the phase are of whole sessions.
    """
    tokenizer = _load_tokenizer(config)
    context, prompt = phase.context, config.prompt_of(phase, store)
    lines = check_phases(config, store, tokenizer, today())
    if config.model.template_variables:
        lines.append(f"The rows are chat messages; their template gets {config.model.template_variables}.")
    if validation and writes_date(tokenizer.chat_template):
        lines.append("verl renders the chat template itself, with the date of the day; trl.json has a fixed one.")
    data = TrainingData(config, store, folder / "tokens", lines.append)
    splits = {"train": scored_trunks(data.trunks(phase, tokenizer))}
    yield from lines
    write_order(folder / "train.parquet", splits["train"], grpo, config.seed + phase.seed)
    if validation:
        ids = draw_sessions(store.session_ids("validation"), phase.validation.sessions, config.seed)
        trunks = [*tokenize_sessions(config, phase, store, tokenizer, map(store.session, ids))]
        splits["validation"] = scored_trunks(trunks) if ids else splits["train"][:1]
        if not ids:
            yield "No session is in validation: verl does not validate; the file that it needs holds train steps."
    for split, trunks in splits.items():
        rows = step_rows(
            store.session,
            tokenizer,
            trunks,
            context,
            prompt,
            phase.get_reward(config.reward_config),
            split=split,
            max_prompt_tokens=config.model.max_prompt_tokens,
            personas=persona_texts(store, context),
            long_pages=config.model.long_pages,
            extraction=extraction_of(store, "strict"),
        )
        count = sum(len(trunk.replies) for trunk in trunks)
        write_rows(folder / f"{split}.parquet", rows, count)
        yield f"{folder / f'{split}.parquet'}: {count:,} steps"
