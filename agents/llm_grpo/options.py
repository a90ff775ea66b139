"""Parses the options of `shop-r1 train` (train.py has the help), without loading torch.

--preset, --rows, --reward ─► a configuration ─► flags that override its keys
--resume, --extend         ─► the configuration of the existing run
"""

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tyro

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.named_code import is_own_run, named_code
from agents.llm_grpo.presets import (
    SHAPES,
    Tables,
    build_config,
    merge,
    preset_names,
    read_tables,
    rows_names,
)
from agents.llm_grpo.run_folder import extend_config, has_begun, read_config
from replay_sessions.foundation.command_line import asks_for_help, parse_leading_options, parse_options
from replay_sessions.foundation.config_errors import convert_fields
from replay_sessions.foundation.errors import BadConfig, MissingExtra
from replay_sessions.foundation.plugins import check_trusted
from replay_sessions.foundation.records import Record
from replay_sessions.store import SessionStore
from shop_env.evaluation.results_file import LOG_FILE
from shop_env.prompts import read_instructions
from shop_env.reward.score import REWARD_PRESETS
from train.machine import GpuName
from train.model_paths import check_model

PROGRAM = "shop-r1 train"


class MachineOptions(Record):
    """The GPUs that --dry-run plans for.

    Attributes:
        gpus: The number of GPUs, with a process for each; None means one of `gpu`, or this machine, with the processes
            of this launch.
        gpu: The kind of GPU, which says memory and speed; None means this machine, or any with `gpus`.
        gpu_gib: The memory of each GPU in GiB; None means that of `gpu`, or 80; not used for this machine.
    """

    gpus: int | None = None
    gpu: GpuName | None = None
    gpu_gib: float | None = None

    @property
    def is_this(self) -> bool:
        """True for the machine that the command runs on."""
        return self.gpus is None and self.gpu is None


class RunOptions(Record):
    """The options that are parsed before the keys of the configuration.

    Attributes:
        preset: The configuration to start from: the name of a preset, such as tiny_cpu, or a .toml FILE.
        rows: The phases to train in place of the preset's: the rows of a paper's table, or a .toml FILE.
        reward: The reward to start from (shop_env/reward/score.py), or your own FILE.py:FUNCTION; None means the
            preset's.
        only: Train only these phases and the phases that they start from; empty means all.
        out: The folder of the run; None means runs/PRESET-seedS.
        extend: If OUT holds a run of this configuration, continue it with the phases and agents that it lacks.
        resume: Continue the run in this folder, with its own configuration.
        trust: Names of code that a preset, file of rows or run.json from another person may run: FILE.py:NAME, agents.
        dry_run: Print steps, tokens, the shares of steps with pages that are too long, and memory; train nothing.
        show_prompt: Print the messages of the first scored step, in the first phase or the first of ONLY, and exit.
        machine: The machine that --dry-run plans for.
        for_verl: Write the files with which verl trains this phase of GRPO on several GPUs or machines into OUT
            (default verl/PRESET-PHASE), and train nothing.
        for_trl: Write the files with which TRL's GRPOTrainer trains this phase into OUT (default trl/PRESET-PHASE).
    """

    preset: str = "tiny_cpu"
    rows: str | None = None
    only: tuple[str, ...] = ()
    reward: str | None = None
    out: Path | None = None
    extend: bool = False
    resume: Path | None = None
    trust: tuple[str, ...] = ()
    dry_run: bool = False
    show_prompt: bool = False
    machine: MachineOptions = MachineOptions()
    for_verl: str | None = None
    for_trl: str | None = None


class TrainOptions(RunOptions):
    """All flags: the fields of RunOptions, and every key of the configuration."""

    config: Annotated[TrainConfig, tyro.conf.arg(name="")]


def prepare(argv: Sequence[str], text: str | None = None) -> tuple[RunOptions, Path, TrainConfig]:
    """Parses the command line into the options, the run's folder, and the configuration of the run.

    The run may be new, resumed or extended. Nothing is written.

    Args:
        argv: The arguments after the program's name.
        text: The text above the flags in the help.

    Raises:
        BadConfig: The call is wrong, or its folder holds a run that it does not continue.
    """
    options, remaining = parse_leading_options(RunOptions, argv, program=PROGRAM)
    if options.resume and not asks_for_help(argv):
        return _resume(options, remaining)
    return _with_folder(options, _parse_config(options, argv, text))


def prepare_from(fields: Mapping[str, Any]) -> tuple[RunOptions, Path, TrainConfig]:
    """Returns the same as `prepare` for a call from Python.

    Args:
        fields: Fields of RunOptions and keys of the configuration; tables are dicts.

    Raises:
        BadConfig: The call is wrong, or its folder holds a run that it does not continue.
    """
    option_names = set(RunOptions.__struct_fields__) - {"reward"}  # the reward may be a table here
    options = convert_fields({key: value for key, value in fields.items() if key in option_names}, RunOptions, "train")
    changes = {key: value for key, value in fields.items() if key not in option_names}
    if options.resume:
        return _resume(options, changes)
    tables = read_tables(options.preset, options.rows)
    config = build_config(merge(tables, changes), "train", options.only)
    _check_files(options, tables, config, named_code(changes))
    return _with_folder(options, config)


def _resume(options: RunOptions, changes: Collection[str]) -> tuple[RunOptions, Path, TrainConfig]:
    assert options.resume is not None
    if changes or options != RunOptions(resume=options.resume, trust=options.trust):
        raise BadConfig("--resume goes on with the run's own configuration; leave out all other flags.")
    return options, options.resume, _read_trusted(options.resume, options.trust)


def _check_files(options: RunOptions, tables: Tables, config: TrainConfig, named_by_call: Sequence[str]) -> None:
    """Raises BadConfig if a .toml file of the call names code that the run uses and the user does not trust.

    Args:
        named_by_call: The code that the call itself names, which is trusted.
    """
    files = [file for file in (options.preset, options.rows) if file is not None and file.endswith(".toml")]
    if files:
        used = set(named_code(msgspec.to_builtins(config)))
        named = [name for name in named_code(tables) if name in used]
        check_trusted(named, {*options.trust, *named_by_call}, " or ".join(f"'{file}'" for file in files))


def _read_trusted(folder: Path, trust: Sequence[str]) -> TrainConfig:
    """Reads the configuration of an existing run.

    Raises:
        BadConfig: The folder holds no run; or its run.json names code that is not trusted, and was edited or written by
            another user.
    """
    config = read_config(folder)
    if not is_own_run(file := folder / "run.json"):
        check_trusted(named_code(msgspec.to_builtins(config)), trust, f"'{file}'")
    return config


def _with_folder(options: RunOptions, config: TrainConfig) -> tuple[RunOptions, Path, TrainConfig]:
    """Returns the options, the run's folder, and the configuration, extended if the folder's run is extended.

    Raises:
        BadConfig: The folder holds another run, or the file of the prompt's instructions cannot be read.
    """
    config = config.resolve_precision(on_gpu=not options.machine.is_this)
    if config.prompt.system_file:
        read_instructions(config.prompt.system_file)  # reports a missing file before the store is read
    preset = Path(options.preset).stem
    folder = Path("runs") / f"{preset}-seed{config.seed}"
    for trainer, phase in (("verl", options.for_verl), ("trl", options.for_trl)):
        if phase is not None:
            folder = Path(trainer) / f"{preset}-{phase}"
    folder = options.out or folder
    if has_begun(folder) and options.extend:
        return options, folder, extend_config(_read_trusted(folder, options.trust), config, folder)
    if (has_begun(folder) or (folder / LOG_FILE).exists()) and not (options.dry_run or options.show_prompt):
        raise BadConfig(
            f"'{folder}' already holds a run or leaderboard. Give another --out, or resume a run by --resume {folder}."
        )
    return options, folder, config


def check_inputs(options: RunOptions, config: TrainConfig) -> None:
    """Raises if the store, the model or the extra `vllm` is missing, before torch is loaded."""
    SessionStore.find(config.store)
    if (path := config.model.path) is not None and not (options.dry_run and path in SHAPES):
        check_model(path)
    if config.rollouts.engine == "vllm" and not options.dry_run and find_spec("vllm") is None:
        raise MissingExtra("rollouts.engine is vllm, which the extra 'vllm' brings: pip install 'shop-r1[vllm]'")


def _parse_config(options: RunOptions, argv: Sequence[str], text: str | None) -> TrainConfig:
    """Returns the preset's configuration, overridden by the flags; a reward that no flag changes keeps its name."""
    tables, source = read_tables(options.preset, options.rows), f"preset '{options.preset}'"
    named = dict(tables)
    if options.reward is not None:
        tables["reward"] = options.reward
    preset = build_config(tables, source)
    reward = preset.reward_config  # a table, so that its numbers are flags
    # A switch that is on by default would become --no-dry-run.
    switches_off = {"dry_run": False, "extend": False, "show_prompt": False}
    default = TrainOptions(
        **msgspec.structs.asdict(options) | switches_off, config=msgspec.structs.replace(preset, reward=reward)
    )
    names = {"Presets": preset_names(), "Rows": rows_names(), "Rewards": REWARD_PRESETS}
    listed = " ".join(f"{kind}: {', '.join(choices)}." for kind, choices in names.items())
    parsed = parse_options(
        TrainOptions, argv, program=PROGRAM, text=f"{text}\n{listed}", default=default, can_be_none=True
    )
    changes = _changes(msgspec.to_builtins(default.config), msgspec.to_builtins(parsed.config))
    if "reward" in changes:
        tables["reward"] = msgspec.to_builtins(reward)
    config = build_config(merge(tables, changes), source, options.only)
    _check_files(options, named, config, argv)
    return config


def _changes(before: Tables, after: Tables) -> Tables:
    """Returns the keys of `after` with values that differ from `before`; tables are compared key by key."""
    changes = {}
    for key, value in after.items():
        old: Any = before.get(key)
        if value != old or key not in before:
            are_tables = isinstance(value, dict) and isinstance(old, dict)
            changes[key] = _changes(old, value) if are_tables else value
    return changes
