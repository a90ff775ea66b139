"""What `python -m agents.llm_grpo.train` does: from its words to a configuration, then the run (train.py has the help).

--preset, --rows, --reward ─► the configuration that they name ─► its keys, as flags over it ─► training ─► evaluation
"""

import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

import msgspec
import torch
import tyro
from rich.console import Console

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.dry_run import dry_run
from agents.llm_grpo.extension import begun_config, extended, note_extension
from agents.llm_grpo.final_table import evaluate_run
from agents.llm_grpo.for_trl import write_for_trl
from agents.llm_grpo.for_verl import write_for_verl
from agents.llm_grpo.presets import load_preset, preset_names, rows_names
from agents.llm_grpo.training_run import TrainingRun
from agents.registry import agent_class, parse_spec
from replay_sessions.commands.command_line import parse_known_options, parse_options
from replay_sessions.errors import BadConfig, CheckpointMismatch
from replay_sessions.provenance import provenance
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file
from shop_env.reward.presets import REWARD_PRESETS
from train.joining import joined
from train.ranks import Ranks
from train.run_log import NoLog, RunLog
from train.watching.watch import load_watches

__all__ = ["RunOptions", "prepare", "run"]

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


def run(words: Sequence[str], *, text: str | None) -> int:
    """Runs the command with what was given after its name; `text` is the head of its help."""
    with joined() as (ranks, advise):
        return _run(words, text, ranks, advise)


def _run(words: Sequence[str], text: str | None, ranks: Ranks, advise: Callable[[str], None]) -> int:
    known = (
        f"Presets: {', '.join(preset_names())}. Rows: {', '.join(rows_names())}. Rewards: {', '.join(REWARD_PRESETS)}."
    )
    start, folder, config = prepare(words, f"{text}\n{known}")
    for name in config.evaluation.agents:
        agent_class(parse_spec(name))  # what is misspelt or not installed is found before hours of work, not after
    if config.threads:
        torch.set_num_threads(config.threads)
    store = SessionStore.open(config.store)
    if start.dry_run:
        return _tell(chain(dry_run(config, store), [f"To train: {_call(words, without='--dry-run')}"]))
    if start.for_verl is not None:
        return _tell(write_for_verl(config, store, start.for_verl, folder))
    if start.for_trl is not None:
        return _tell(write_for_trl(config, store, start.for_trl, folder))
    watches = load_watches(config.watch)
    advise(f"To go on from the last saved state, launch any number of processes with --resume {folder}")
    asked, config = config, config if ranks.alone else config.drawn_by_prompt()
    ranks.meet()  # from here on no other looks whether there is a run
    if ranks.writes:
        _begin(folder, config, store)
    with RunLog(folder, watches) if ranks.writes else NoLog() as log:
        if start.resume is not None and config != asked:
            log.say("this run began in one process; several draw other replies than that would have (grpo.draws)")
        training = TrainingRun(config, store, folder, log, ranks)
        training.train()
        evaluate_run(training)
    return 0


def _tell(lines: Iterable[str]) -> int:
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(line, markup=False)
    return 0


def _call(words: Sequence[str], *, without: str) -> str:
    return f"{PROGRAM} {shlex.join(word for word in words if word != without)}"


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
    parsed = parse_options(TrainOptions, words, program=PROGRAM, text=text, default=default, can_be_none=True).config
    return msgspec.structs.replace(parsed, reward=preset.reward) if parsed.reward == spelt_out.reward else parsed


def _begin(folder: Path, config: TrainConfig, store: SessionStore) -> None:
    """Notes a new run, or that one has more phases; it goes on with the sessions that it began with, or not at all."""
    file = folder / "run.json"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        record = provenance(msgspec.to_builtins(config), store=store, seed=config.seed)
        replace_file(file, json.dumps(record, indent=2) + "\n")
        return
    begun_with = json.loads(file.read_text(encoding="utf-8"))["store"]["fingerprint"]
    if begun_with != store.fingerprint:
        raise CheckpointMismatch(
            f"the run in '{folder}' began with store {begun_with[:12]}, but '{store.path}' is now "
            f"{store.fingerprint[:12]}. Put the former store back, or start a new run."
        )
    note_extension(folder, config, store)
