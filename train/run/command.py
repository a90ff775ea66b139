"""What `python -m agents.llm_grpo.train` does with its options (options.py): training ─► evaluation."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import msgspec
import torch
from rich.console import Console, RenderableType

from replay_sessions.foundation.durable_files import TRAINING_LOCK, replace_json, working_alone_in
from replay_sessions.foundation.provenance import provenance
from replay_sessions.store import SessionStore
from train.process_group import process_group
from train.run.config import TrainConfig
from train.run.dry_run import dry_run
from train.run.evaluation import RunAgents
from train.run.export import export_phase
from train.run.extension import check_store, record_extension
from train.run.options import PROGRAM, RunOptions
from train.run.table import evaluate_run
from train.run.training_run import TrainingRun
from train.run_log import NoLog, RunLog, load_trackers


def run(words: Sequence[str], parse: Callable[[], tuple[RunOptions, Path, TrainConfig]], agents: RunAgents) -> int:
    """Runs the command with the words after its name, which `parse` turns into options and configuration."""
    with process_group() as (ranks, advise), ExitStack() as open_while_training:
        options, folder, config = parse()
        for name in config.evaluation.agents:
            agents.spec(name)  # a misspelt or missing agent is reported before hours of work, not after
        if config.threads:
            torch.set_num_threads(config.threads)
        store = SessionStore.open(config.store)
        if options.dry_run:
            call = shlex.join(word for word in words if word != "--dry-run")
            return _print(chain(dry_run(config, store), [f"To train: {PROGRAM} {call}"]))
        if options.for_verl is not None:
            return _print(export_phase(config, store, "verl", options.for_verl, folder))
        if options.for_trl is not None:
            return _print(export_phase(config, store, "trl", options.for_trl, folder))
        trackers = load_trackers(config.watch)
        advise(f"To go on from the last saved state, launch any number of processes with --resume {folder}")
        requested, config = config, config if ranks.is_single else config.with_seeds_by_prompt()
        ranks.barrier()  # from here on no other looks whether there is a run
        log: RunLog = NoLog()
        if ranks.is_main:
            open_while_training.enter_context(working_alone_in(folder, TRAINING_LOCK))
            begin_run(folder, config, store)
            log = open_while_training.enter_context(RunLog(folder, trackers))
        if options.resume is not None and config != requested:
            log.info(
                "this run began in one process; several draw other replies than that would have (grpo.rollout_seeds)"
            )
        training = TrainingRun(config, store, folder, log, agents, ranks)
        training.train()
        evaluate_run(training)
        return 0


def _print(lines: Iterable[RenderableType]) -> int:
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(line, markup=False)
    return 0


def begin_run(folder: Path, config: TrainConfig, store: SessionStore) -> None:
    """Writes run.json of a new or extended run."""
    if (folder / "run.json").exists():
        check_store(folder, store)
        record_extension(folder, config, store)
        return
    folder.mkdir(parents=True, exist_ok=True)
    record = provenance(msgspec.to_builtins(config), store=store, seed=config.seed)
    replace_json(folder / "run.json", record)
