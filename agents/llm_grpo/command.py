"""Runs `shop-r1 train` with its parsed options (options.py): training ─► evaluation, a dry run or an export."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.data import tie_lines
from agents.llm_grpo.dry_run import dry_run
from agents.llm_grpo.evaluation import check_rows, evaluate_run
from agents.llm_grpo.export import export_phase
from agents.llm_grpo.options import RunOptions
from agents.llm_grpo.run_folder import begin_run
from agents.llm_grpo.run_plan import get_machine
from agents.llm_grpo.training_run import TrainingRun
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.locks import TRAINING_LOCK, working_alone_in
from replay_sessions.foundation.table import Table, print_results
from replay_sessions.schema import Terminate
from replay_sessions.store import SessionStore
from shop_env.reward import best_breakdown
from shop_env.reward.score import LOG_LIKELIHOOD
from train.grpo.config import GrpoConfig
from train.objectives import load_objective, read_options
from train.process_group import process_group
from train.run_log import NoLog, RunLog, load_trackers


def run(parse: Callable[[], tuple[RunOptions, Path, TrainConfig]], argv: Sequence[str] = ()) -> int:
    """Runs the command and returns its exit code.

    Args:
        parse: A function that returns the options, the run's folder and its configuration.
        argv: The arguments of the command line, for the launch line of a dry run.
    """
    with process_group() as ranks, ExitStack() as open_while_training:
        options, folder, config = parse()
        check_rows(config)  # a misspelt or missing agent is reported before hours of work, not after
        config.evaluation_config.check_functions()
        _check_phases(config)
        if config.threads:
            torch.set_num_threads(config.threads)
        store = SessionStore.open(config.store)
        lines: Iterator[Table | str] | None = None
        if options.dry_run:
            lines = dry_run(config, store, get_machine(options.machine), argv)
        elif exported := options.for_verl or options.for_trl:
            lines = export_phase(config, store, "verl" if options.for_verl else "trl", exported, folder)
        if lines is not None:
            if ranks.is_main:
                print_results(*lines)
            return 0
        trackers = load_trackers(config.watch)
        ranks.barrier()  # after this no process checks whether the folder holds a run
        log: RunLog = NoLog()
        begun: str | None = None
        if ranks.is_main:
            open_while_training.enter_context(working_alone_in(folder, TRAINING_LOCK))
            begun = begin_run(folder, config, store)
            log = RunLog(folder, trackers)
        ranks.barrier()
        if not (folder / "run.json").exists():
            raise BadConfig(f"'{folder}' is not the run's folder on this machine; give --out on a disk that all share.")
        with log:  # its progress bars end before the table is printed
            if begun is not None:
                log.info(begun)
                for line in tie_lines(config, store):
                    log.info(line)
            training = TrainingRun(config, store, folder, log, ranks)
            open_while_training.callback(training.close)
            training.train()
        evaluate_run(config, store, folder, ranks, training.results)
        return 0


def _check_phases(config: TrainConfig) -> None:
    """Raises if an objective, its options or a reward cannot be used."""
    for name, phase in config.phases.items():
        reward = phase.get_reward(config.reward_config)
        if isinstance(phase.hyperparameters, GrpoConfig):
            read_options(load_objective(phase.method, reward.kind), phase.options, name)
        if reward != LOG_LIKELIHOOD:  # log_likelihood scores no texts
            best_breakdown(Terminate(), reward)
