"""Plans the runs of a sweep, and makes or resumes those that are missing, each in a separate process.

    Sweep × seeds ─► plan ─► PlannedRun ─► run_missing ─► OUT/RUN/seedS/results.json

OUT/store0            the demo shop of seed 0, if no store is named
OUT/shop_r1/seed0     the run of seed 0 for all of Shop-R1's tables: run.json, checkpoints, agents/*/

A training accumulates the phases of all calls (`shop-r1 train --extend`). So phases that two tables share are trained
and evaluated once, and a stopped run is resumed. If a folder has a training with another preset, store or flags, the
sweep is refused before any run.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated

import msgspec
import tyro

from agents.agent_identity import gives_probabilities
from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.options import MachineOptions, prepare
from agents.llm_grpo.presets import load_preset
from agents.llm_grpo.run_folder import check_store
from benchmarks.leaderboard.ranking import LeaderboardConfig, agent_specs
from benchmarks.sweep.file import RunSpec, Sweep
from benchmarks.sweep.processes import StopForwarder, gpu_environments, launch_words, list_gpus, run_process
from replay_sessions.demo_shop.visits import DEMO_SESSIONS, write_demo_store
from replay_sessions.foundation.command_line import parse_options
from replay_sessions.foundation.errors import BadConfig, ShopR1Error, check_at_least, did_you_mean
from replay_sessions.foundation.locks import working_alone_in
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.records import Record
from replay_sessions.store import SessionStore
from shop_env.evaluation.results_file import digest_file, read_log, steps_file


class SweepOptions(Record):
    """Makes the runs of a file, or of a paper's table, and writes one table of all seeds.

    Attributes:
        sweep: A .toml FILE, or the name of a paper's table (listed above).
        out: The folder for the runs and the table.
        seeds: Seeds that replace those of the file.
        store: A store that replaces those of the file and of presets: a path, or `demo` for a demo shop of each seed.
        preset: A preset that replaces that of every training.
        processes: Number of runs at the same time.
        gpus_per_run: The number of GPUs of each run, which runs at the same time do not share; a training has a process
            for each. None divides the GPUs evenly among the runs, with one process each.
        launch: The launcher of each training with its flags in quotes, such as torchrun and its number of processes.
        dry_run: Print which runs are finished and which are missing, and what these cost, without running any.
        machine: The machine that the dry run plans for; its `gpus` are those of a run, by default `gpus_per_run`.
        flags: Further flags of every run's command, after `--`.
    """

    sweep: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="FILE|NAME")]]
    flags: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="FLAGS")]] = ()
    out: Path
    seeds: tuple[int, ...] = ()
    store: str | None = None
    preset: str | None = None
    processes: int = 1
    gpus_per_run: int | None = None
    launch: str | None = None
    dry_run: bool = False
    machine: MachineOptions = MachineOptions()

    def __post_init__(self) -> None:
        check_at_least(1, processes=self.processes, gpus_per_run=self.gpus_per_run)

    @property
    def name(self) -> str:
        """The name of the table's files, without suffix."""
        return Path(self.sweep).stem


@dataclass(frozen=True)
class PlannedRun:
    """A run of one seed, finished or not.

    Attributes:
        seed: The seed of the run.
        folder: The folder of the run.
        config: The configuration of a training, with the phases of earlier calls; None for a leaderboard.
        phases: The phases that the table needs.
        module: The module of the command.
        argv: The arguments of the command.
        store: The path of the store. If it is a demo shop, it is written before the run.
    """

    seed: int
    folder: Path
    config: TrainConfig | None
    phases: tuple[str, ...]
    module: str
    argv: tuple[str, ...]
    store: Path

    @property
    def name(self) -> str:
        return f"{self.folder.parent.name}/{self.folder.name}"

    @property
    def is_finished(self) -> bool:
        """True if a training has all rows that the table needs; False for a leaderboard, which skips finished steps."""
        if self.config is None:
            return False
        try:
            entries = read_log(self.folder, trust=None).entries
        except BadConfig:  # not finished or of another version; the training command reports which
            return False
        decodings = [decoding.file_name(name) for name in self.phases for decoding in self.config.get_decodings(name)]
        present = [entry for entry in entries if (self.folder / entry.steps).exists()]
        is_intact = all(digest_file(self.folder / entry.steps) == entry.sha256 for entry in present)
        needed = {steps_file(name) for name in decodings}
        return is_intact and needed <= {entry.steps for entry in present}

    @property
    def missing_phases(self) -> list[str]:
        """The phases of a training that are not finished."""
        file = self.folder / "phases.json"
        finished = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        return [phase for phase in (self.config.phases if self.config else ()) if phase not in finished]

    def describe(self) -> Iterator[str]:
        """Yields the state of the run, then that of each phase of a training."""
        yield f"{self.folder}: {'finished' if self.is_finished else 'to be run'}, store {self.store}"
        missing = self.missing_phases
        for phase in self.config.phases if self.config else ():
            yield f"  {phase:<26} {'missing' if phase in missing else 'finished'}"


def without_untaught_rows(sweep: Sweep, options: SweepOptions) -> Sweep:
    """Returns the sweep without the rows that are 0 by construction (TrainConfig.is_untaught), and with a note of them.

    Raises:
        BadConfig: A flag is wrong, a row's phase does not exist, or no row remains.
    """
    untaught = []
    for run in sweep.run:
        if of_run := sweep.rows_of(run):
            rows_file = () if run.rows_file is None else ("--rows", run.rows_file)
            _, _, config = prepare((*_training_arguments(run, options), *rows_file, "--dry-run"))
            for row in of_run:
                if row.phase not in config.phases:
                    raise BadConfig(
                        f"row '{row.label}': the training of run '{run.name}' has no phase '{row.phase}'; a table "
                        f"needs the phases of all its rows. {did_you_mean(row.phase, config.phases)}"
                    )
            untaught += [row.label for row in of_run if config.is_untaught(row.phase)]
    if not untaught:
        return sweep
    reason = (
        f"{', '.join(untaught)}: random weights that no SFT taught; a preset with a pretrained model has such rows."
    )
    rows = tuple(row for row in sweep.row if row.label not in untaught)
    if not rows:
        raise BadConfig(f"every row would be 0 by construction: {reason}")
    return msgspec.structs.replace(
        sweep,
        row=rows,
        compare=tuple(pair for pair in sweep.compare if not {*pair} & {*untaught}),
        notes=(*sweep.notes, f"Left out, because they would be 0 by construction: {reason}"),
    )


def plan(sweep: Sweep, options: SweepOptions) -> dict[str, list[PlannedRun]]:
    """Plans the runs of a sweep: by name, one for each seed. It writes nothing.

    Raises:
        BadConfig: A flag is wrong, or a folder holds a training of another configuration.
        UnknownAgent: An agent does not exist.
        CheckpointMismatch: A folder holds a training on another store.
    """
    seeds = options.seeds or sweep.seeds
    if len({*seeds}) < len(seeds):
        raise BadConfig(f"seeds are {', '.join(map(str, seeds))}: each must be another one.")
    return {run.name: [_plan_run(run, seed, sweep, options) for seed in seeds] for run in sweep.run}


def _plan_run(run: RunSpec, seed: int, sweep: Sweep, options: SweepOptions) -> PlannedRun:
    folder = options.out / run.name / f"seed{seed}"
    preset = options.preset or run.preset
    store = options.store or sweep.store
    if store == "demo" and not options.store and not run.agents:
        store = load_preset(preset).store
    path = options.out / f"store{seed}" if store == "demo" else SessionStore.open(_filled(store, seed)).path
    where = ("--store", str(path), "--seed", str(seed), "--out", str(folder))
    if run.agents:
        agents = [_filled(agent, seed) for agent in run.agents]
        argv = ("--agents", *agents, *run.flags, *options.flags, *where)
        parse_options(LeaderboardConfig, argv, program="shop-r1 rank")
        for spec in agent_specs(tuple(agents)):
            if (
                not Path(spec.target).resolve().is_relative_to(options.out.resolve())
            ):  # checkpoints there are yet to come
                gives_probabilities(spec)  # reports a missing agent before hours of work
        return PlannedRun(seed, folder, None, (), "benchmarks.leaderboard", argv, path)
    only = dict.fromkeys(row.phase for row in sweep.rows_of(run))
    argv = (*_training_arguments(run, options), *where, "--extend")
    if run.rows_file is not None:
        argv = (*argv, "--rows", run.rows_file, "--only", *only)  # the table needs all of its rows
    _, _, config = prepare(argv)
    if (folder / "run.json").exists() and path.exists():
        check_store(folder, SessionStore.open(path))
    return PlannedRun(seed, folder, config, tuple(only or config.phases), "agents.llm_grpo.train", argv, path)


def _training_arguments(run: RunSpec, options: SweepOptions) -> tuple[str, ...]:
    preset = options.preset or run.preset
    # The flags that distinguish runs come last, so that no flag of the call overrides them.
    return ("--preset", preset, *run.flags, *options.flags, *_preset_flags(run, preset))


def _filled(text: str, seed: int) -> str:
    return text.replace("{seed}", str(seed))


def _preset_flags(run: RunSpec, preset: str) -> tuple[str, ...]:
    name = Path(preset).stem
    if run.flags_of and name not in run.flags_of:
        raise BadConfig(
            f"run '{run.name}' has flags for {', '.join(run.flags_of)}, and none for preset '{name}': add some in a "
            "copy of the sweep's file"
        )
    return run.flags_of.get(name, ())


def run_missing(
    runs: Sequence[PlannedRun], processes: int = 1, *, gpus_per_run: int | None = None, launch: str | None = None
) -> None:
    """Makes the runs that are not finished, `processes` at a time; their tables are not printed.

    Args:
        runs: The runs.
        processes, gpus_per_run, launch: As in SweepOptions.

    Raises:
        BadConfig: Another process works in the folder of a run, or there are too few GPUs.
        ShopR1Error: A run failed.
    """
    missing = [run for run in runs if not run.is_finished]
    free = SimpleQueue[dict[str, str]]()  # the GPUs of a run
    for variables in gpu_environments(list_gpus(), processes, gpus_per_run):
        free.put(variables)
    if any(run.config for run in missing):
        with requires_extra("train"):  # reports a missing extra before hours of work
            import agents.llm_grpo.command  # noqa: F401, PLC0415 - torch may be missing
    for run in missing:  # runs may share a store
        with working_alone_in(run.folder):
            if not run.store.exists():
                write_demo_store(run.store, DEMO_SESSIONS, run.seed)
    with StopForwarder() as stops, ThreadPoolExecutor(processes) as pool:
        for future in [pool.submit(_run, run, stops, free, launch_words(launch, gpus_per_run)) for run in missing]:
            future.result()


def _run(run: PlannedRun, stops: StopForwarder, free: SimpleQueue[dict[str, str]], launcher: Sequence[str]) -> None:
    if stops.ended:  # a signal came, or another run failed
        return
    variables = free.get()
    try:
        sys.stderr.write(f"run: {run.folder}\n")
        started = launcher if run.config else [sys.executable]
        if code := run_process([*started, "-m", run.module, *run.argv], stops, variables):
            raise ShopR1Error(f"the run in '{run.folder}' ended with exit code {code}; its message stands above.")
    except BaseException:
        stops.ended = True
        raise
    finally:
        free.put(variables)
