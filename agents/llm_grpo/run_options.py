"""What the words of `python -m agents.llm_grpo.train` ask for (train.py has the help); nothing here loads torch.

--preset, --rows, --reward ─► the configuration that they name ─► its keys, as flags over it
--resume, --extend         ─► the configuration of the run that is there
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import tyro

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.extension import begun_config, extended
from agents.llm_grpo.presets import load_preset, preset_names, rows_names
from replay_sessions.commands.command_line import parse_known_options, parse_options
from replay_sessions.errors import BadConfig
from shop_env.reward.presets import REWARD_PRESETS

__all__ = ["PROGRAM", "RunOptions", "prepare"]

PROGRAM = "python -m agents.llm_grpo.train"


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is decided before the configuration's own keys.

    Attributes:
        preset: The configuration to start from: tiny_cpu, or a .toml FILE.
        rows: Which rows to train in place of the preset's own phases: those of a paper's table, or a .toml FILE.
        reward: The reward to start from (shop_env/reward/presets.py); None: the preset's.
        only: Of those rows, or of the preset's phases, only these and the ones that they start from; all by default.
        out: Where the run is written; None: runs/PRESET-seedS.
        extend: OUT may hold a run of this configuration: it goes on, with the phases and agents that it lacks.
        resume: Go on with the run in this folder, with its own configuration.
        dry_run: Tell steps, tokens and memory, and train nothing.
        for_verl: Write what verl needs to train this phase of GRPO on several GPUs or machines into OUT
            (verl/PRESET-PHASE), and train nothing.
        for_trl: The same for TRL's GRPOTrainer (trl/PRESET-PHASE).
    """

    preset: str = "tiny_cpu"
    rows: str | None = None
    only: tuple[str, ...] = ()
    reward: str | None = None
    out: Path | None = None
    extend: bool = False
    resume: Path | None = None
    dry_run: bool = False
    for_verl: str | None = None
    for_trl: str | None = None


class TrainOptions(RunOptions, frozen=True, kw_only=True):
    """All flags: those above, and every key of the configuration."""

    config: Annotated[TrainConfig, tyro.conf.arg(name="")]


def prepare(words: Sequence[str], text: str | None = None) -> tuple[RunOptions, Path, TrainConfig]:
    """What was asked for, and the run's folder and configuration, new, resumed or extended; nothing is written.

    Raises:
        BadConfig: The call is wrong, or its folder holds a run that it does not go on with.
    """
    start, rest = parse_known_options(RunOptions, words, program=PROGRAM)
    if start.resume and not {"-h", "--help"}.intersection(words):
        if rest or start != RunOptions(resume=start.resume):
            others = [word for word in words if word.startswith("--") and not word.startswith("--resume")]
            raise BadConfig(f"--resume goes on with the run's own configuration; leave out {', '.join(others)}.")
        return start, start.resume, begun_config(start.resume)
    config = _parse_config(start, words, text)
    folder = start.out or Path("runs") / f"{Path(start.preset).stem}-seed{config.seed}"
    for trainer, phase in (("verl", start.for_verl), ("trl", start.for_trl)):
        if phase is not None and start.out is None:
            folder = Path(trainer) / f"{Path(start.preset).stem}-{phase}"
    if (folder / "run.json").exists() and start.extend:
        return start, folder, extended(begun_config(folder), config, folder)
    if (folder / "run.json").exists() and not start.dry_run:
        raise BadConfig(
            f"'{folder}' already holds a run. Go on with it by --resume {folder}, or give another folder by --out."
        )
    return start, folder, config


def _parse_config(start: RunOptions, words: Sequence[str], text: str | None) -> TrainConfig:
    """The preset's configuration with the flags over it; a reward that no flag changes keeps its name."""
    preset = load_preset(start.preset, start.rows, start.only)
    if start.reward is not None:
        preset = msgspec.structs.replace(preset, reward=start.reward)
    spelt_out = msgspec.structs.replace(preset, reward=preset.reward_config)
    # A switch that is on by default would be one to turn off.
    switches_off = {"dry_run": False, "extend": False}
    default = TrainOptions(**msgspec.structs.asdict(start) | switches_off, config=spelt_out)
    parsed = parse_options(
        TrainOptions, words, program=PROGRAM, text=f"{text}\n{_names()}", default=default, can_be_none=True
    ).config
    if parsed.reward == spelt_out.reward:
        parsed = msgspec.structs.replace(parsed, reward=preset.reward)
    return parsed.settled()


def _names() -> str:
    """What there is to choose from, for the help."""
    return (
        f"Presets: {', '.join(preset_names())}. Rows: {', '.join(rows_names())}. Rewards: {', '.join(REWARD_PRESETS)}."
    )
