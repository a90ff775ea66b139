"""What `python -m agents.llm_grpo.train` does with what it was asked for (run_options.py): training ─► evaluation."""

import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import msgspec
import torch
from rich.console import Console

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.dry_run import dry_run
from agents.llm_grpo.extension import note_extension
from agents.llm_grpo.final_table import evaluate_run
from agents.llm_grpo.for_trl import write_for_trl
from agents.llm_grpo.for_verl import write_for_verl
from agents.llm_grpo.run_options import PROGRAM, RunOptions
from agents.llm_grpo.training_run import TrainingRun
from agents.registry import agent_class, parse_spec
from replay_sessions.errors import CheckpointMismatch
from replay_sessions.provenance import provenance
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file
from replay_sessions.store.locks import TRAINING_LOCK, working_alone_in
from train.joining import joined
from train.ranks import Ranks
from train.run_log import NoLog, RunLog
from train.watching.watch import load_watches

__all__ = ["run"]


def run(words: Sequence[str], asked_for: Callable[[], tuple[RunOptions, Path, TrainConfig]]) -> int:
    """Runs the command with what was given after its name, from which `asked_for` makes options and configuration."""
    with joined() as (ranks, advise):
        return _run(words, asked_for, ranks, advise)


def _run(
    words: Sequence[str],
    asked_for: Callable[[], tuple[RunOptions, Path, TrainConfig]],
    ranks: Ranks,
    advise: Callable[[str], None],
) -> int:
    start, folder, config = asked_for()
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
    with ExitStack() as open_while_training:
        log: RunLog = NoLog()
        if ranks.writes:
            open_while_training.enter_context(working_alone_in(folder, TRAINING_LOCK))
            _begin(folder, config, store)
            log = open_while_training.enter_context(RunLog(folder, watches))
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
