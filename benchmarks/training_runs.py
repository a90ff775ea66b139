"""Many training runs: planned, trained in processes of their own, resumed, and read again.

    seeds × words of the training command ─► plan_run ─► PlannedRun ─► train_missing ─► RUN/results.json, cost.json

Series of seeds and the papers' tables use it. A run has the phases of every call so far (`agents.llm_grpo.train
--extend`): what two tables share is trained and evaluated once, and what was stopped goes on. A run of another preset,
store or flags is refused before anything is trained.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from agents.agent_code import code_digest
from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.options import prepare
from agents.llm_grpo.presets import check_store, load_preset
from agents.registry import parse_spec
from benchmarks.training_processes import StopForwarder, run_measured
from replay_sessions.demo_shop.visits import DEMO_SESSIONS, write_demo_store
from replay_sessions.foundation.durable_files import replace_file
from replay_sessions.foundation.errors import BadConfig, BadSession, ShopR1Error, check_at_least
from replay_sessions.foundation.locks import working_alone_in
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.records import Record
from replay_sessions.store import SessionStore
from shop_env.evaluation.log import AgentFiles, read_log, read_records
from shop_env.metrics import StepRecord
from train.config import SftConfig


class TrainingOptions(Record):
    """Options of the commands that train many runs.

    Attributes:
        training: Flags of agents.llm_grpo.train, after `--`.
        seeds: Whole numbers, separated by spaces or commas.
        preset: The model and how it learns, as in training.
        store: One store for all seeds; None: the preset's, or a demo shop for each seed.
        processes: So many runs are trained at a time.
        dry_run: Print what is trained already and what would be, and do nothing.
    """

    training: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="FLAGS")]] = ()
    seeds: tuple[str, ...]
    preset: str = "tiny_cpu"
    store: str | None = None
    processes: int = 1
    dry_run: bool = False

    def __post_init__(self) -> None:
        check_at_least(1, processes=self.processes)


@dataclass(frozen=True)
class PlannedRun:
    """One run of the training command, finished or to be trained.

    Attributes:
        config: Its configuration, with the phases that it has already, or is to have.
        phases: Those of them whose rows are wanted.
        words: Of the training command.
        flags: Those of them that make it a variant of another run.
        store: Whose sessions it learns from; a demo shop is written when it is trained.
    """

    seed: int
    folder: Path
    config: TrainConfig
    phases: tuple[str, ...]
    words: tuple[str, ...]
    flags: tuple[str, ...]
    store: Path

    @property
    def agents(self) -> list[str]:
        """The labels of the agents beside the policies."""
        return [parse_spec(agent).label for agent in self.config.evaluation.agents]

    def records_file(self, row: str) -> Path:
        """The records of a row: an agent's label, or a decoding's file name of a phase."""
        return AgentFiles.of(self.folder, row).steps

    def missing_rows(self) -> list[Path]:
        """The records of wanted rows that are not there, or are those of an agent that was edited since."""
        try:
            entries = {self.folder / entry.steps: entry for entry in read_log(self.folder).entries}
        except BadConfig:  # not finished, or of another version: the training command says which
            entries = {}
        specs = {self.records_file(spec.label): spec for spec in map(parse_spec, self.config.evaluation.agents)}
        rows = [decoding.file_name(phase) for phase in self.phases for decoding in self.config.decodings_of(phase)]
        return [
            file
            for file in [*specs, *map(self.records_file, rows)]
            if file not in entries
            or not file.exists()
            or (file in specs and entries[file].identity["code"] != code_digest(specs[file]))
        ]

    def read_records(self, row: str) -> list[StepRecord]:
        """The records of a row.

        Raises:
            BadSession: There are none, or they cannot be read.
        """
        log = read_log(self.folder)
        file = self.records_file(row)
        entry = next((entry for entry in log.entries if self.folder / entry.steps == file), None)
        if entry is None:
            raise BadSession(f"'{self.folder}' has no row '{row}'")
        return read_records(self.folder, log, entry, SessionStore.open(self.store))

    def read_json(self, name: str) -> Any:
        """One of its files, such as phases.json or cost.json; None where there is none.

        Raises:
            BadSession: It is damaged.
        """
        path = self.folder / name
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise BadSession(f"'{path}' is no JSON ({error}): give another --out") from error

    def finished_phases(self) -> dict[str, Any]:
        """Its phases that are trained."""
        return self.read_json("phases.json") or {}

    def provenance(self) -> dict[str, Any]:
        """Its run.json without the configuration."""
        return {name: value for name, value in self.read_json("run.json").items() if name != "config"}

    def describe(self) -> Iterator[str]:
        """Which phases are trained and which are not, with their steps, and how many rows are to be evaluated."""
        yield f"\n{self.folder}" + ("" if self.store.exists() else f" (would make {self.store})")
        finished = self.finished_phases()
        for name, phase in self.config.phases.items():
            state = "finished" if name in finished else "missing"
            yield f"  {name:<26} {phase.method:<5} {state:<9} {format_steps(self.config, name)}"
        yield f"  rows to evaluate on the {self.config.evaluation.split} split: {len(self.missing_rows())}"


def parse_seeds(words: Sequence[str]) -> tuple[int, ...]:
    """Whole numbers, separated by spaces or commas.

    >>> parse_seeds(("1", "2,3", "2"))
    (1, 2, 3)
    """
    try:
        seeds = [int(seed) for word in words for seed in word.split(",") if seed]
    except ValueError as error:
        raise BadConfig(f"--seeds {' '.join(words)}: whole numbers were expected, such as 101,102") from error
    if not seeds:
        raise BadConfig("--seeds names no seed; for example --seeds 101,102,103")
    return tuple(dict.fromkeys(seeds))


def find_store(store: str | None, preset: str, out: Path, seed: int) -> Path:
    """The store of the call or the preset; else a demo shop of this seed's own in `out`, which may not exist yet."""
    name = store or load_preset(preset).store
    return out / f"store{seed}" if store is None and name == "demo" else SessionStore.open(name).path


def plan_run(
    words: Sequence[str],
    flags: Sequence[str] = (),
    *,
    folder: Path,
    seed: int,
    store: Path,
    phases: Sequence[str] = (),
) -> PlannedRun:
    """The run in `folder` that these words of the training command ask for; nothing is written.

    Args:
        flags: Further words, which make it a variant of another run.
        phases: Whose rows are wanted; empty: those of all phases.

    Raises:
        BadConfig: A flag is wrong, or the folder holds a run of another configuration.
        CheckpointMismatch: The folder holds a run on another store.
    """
    if (folder / "results.json").exists() and not (folder / "run.json").exists():
        raise BadConfig(f"'{folder}' holds results without a run.json, which says what made them: give another --out.")
    words = (*words, *flags, "--store", str(store), "--seed", str(seed), "--out", str(folder), "--extend")
    _, _, config = prepare(words)
    if (folder / "run.json").exists() and store.exists():
        check_store(folder, SessionStore.open(store))
    return PlannedRun(seed, folder, config, tuple(phases or config.phases), words, tuple(flags), store)


def train_missing(runs: Sequence[PlannedRun], processes: int = 1, *, quiet: bool = False) -> None:
    """Trains and evaluates what is missing of the runs, so many of them at a time.

    Args:
        quiet: The table of each run is not printed.

    Raises:
        BadConfig: Another call is at work on a run.
        ShopR1Error: A training has failed.
    """
    missing = [run for run in runs if run.missing_rows()]
    if missing:
        with requires_extra("train"):  # reported before hours of work, not after
            import agents.llm_grpo.command  # noqa: F401, PLC0415 - torch may be missing
    for run in missing:  # runs may share a store
        with working_alone_in(run.folder):
            if not run.store.exists():
                write_demo_store(run.store, DEMO_SESSIONS, run.seed)
    with StopForwarder() as stops, ThreadPoolExecutor(processes) as pool:
        for future in [pool.submit(_train, run, stops, quiet=quiet) for run in missing]:
            future.result()


def _train(run: PlannedRun, stops: StopForwarder, *, quiet: bool) -> None:
    if stops.ended:  # stopped, or another run has failed
        return
    try:
        sys.stderr.write(f"training: {run.folder}\n")
        with working_alone_in(run.folder):
            if not run.missing_rows():  # another call may have finished it before this one came here
                return
            started = time.monotonic()
            peak_bytes = 0
            command = [sys.executable, "-m", "agents.llm_grpo.train", *run.words]
            try:
                code, peak_bytes = run_measured(command, quiet=quiet, stops=stops)
            finally:
                _add_cost(run, time.monotonic() - started, peak_bytes)
        if code:
            raise ShopR1Error(f"the run in '{run.folder}' ended with exit code {code}; its message stands above.")
    except BaseException:
        stops.ended = True
        raise


def _add_cost(run: PlannedRun, wall_s: float, peak_bytes: int) -> None:
    """A run may take several calls: their times add up, the highest peak stays."""
    before = run.read_json("cost.json") or {"wall_s": 0.0, "peak_memory_mb": 0}
    cost = {
        "wall_s": round(before["wall_s"] + wall_s, 1),
        "peak_memory_mb": max(before["peak_memory_mb"], round(peak_bytes / 2**20)),
    }
    replace_file(run.folder / "cost.json", json.dumps(cost) + "\n")


def format_steps(config: TrainConfig, name: str) -> str:
    """How long a phase takes: its steps or epochs, stage by stage."""
    phase = config.phases[name]
    if phase.method == "none":
        return "the model as it is" if phase.start == "model" else f"the weights of {phase.start}"
    if phase.same_time_as is not None:
        return f"as long as {phase.same_time_as} takes"
    if phase.numbers == "grpo":
        return f"{config.grpo_of(name).steps:,} steps"
    return format_stages(config.sft_of(name))


def format_stages(sft: SftConfig) -> str:
    """Steps or epochs, stage by stage."""
    return " + ".join(
        f"{one.steps:,} steps" if one.steps is not None else f"{one.epochs:g} epochs" for one in sft.stages
    )
