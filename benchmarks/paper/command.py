"""What `python -m benchmarks.paper` does (its help is in __main__.py).

words ─► the runs that the table needs ─► what is missing, trained ─► the table
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import tyro
from rich.console import Console

from agents.llm_grpo.config import TrainConfig
from agents.results import results_console
from benchmarks.paper.published import PaperTable, load_table
from benchmarks.paper.result import table_result
from benchmarks.paper.training import Asked, SeedRun, planned_runs, train
from benchmarks.paper.written import show, write
from benchmarks.training_processes import whole_numbers
from replay_sessions.commands.command_line import parse_options
from replay_sessions.errors import BadConfig
from replay_sessions.plugins import load_with_extra
from replay_sessions.stop_signals import terminable

__all__ = ["run"]


class MakeTable(msgspec.Struct, frozen=True, kw_only=True):
    """Makes a table of a paper.

    Attributes:
        table: Which one; `--help` lists them above.
        preset: The model and how it learns: tiny_cpu, smollm2_cpu, …, or a .toml FILE.
        seeds: Whole numbers, separated by spaces or commas.
        store: One store for all seeds; None: the preset's, or a demo shop for each seed.
        sessions: So many of the test split; None: as many as the preset says.
        out: The runs and the tables; None: runs/paper-PRESET.
        smaller_model: For customer6 and a preset whose model is given: its smaller one.
        dry_run: Tell what would be trained and what is there, and do nothing.
        training: Flags of agents.llm_grpo.train, after `--`.
    """

    training: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="FLAGS")]] = ()
    table: str
    preset: str = "tiny_cpu"
    seeds: tuple[str, ...] = ("0", "1", "2")
    store: str | None = None
    sessions: int | None = None
    out: Path | None = None
    smaller_model: str | None = None
    dry_run: bool = False

    def __post_init__(self) -> None:
        if self.sessions is not None and self.sessions < 1:
            raise BadConfig(f"--sessions is {self.sessions}; it must be at least 1.")

    def asked(self) -> Asked:
        """What decides the runs."""
        return Asked(
            preset=self.preset,
            seeds=tuple(whole_numbers(self.seeds)),
            out=self.out or Path("runs") / f"paper-{Path(self.preset).stem}",
            store=self.store,
            sessions=self.sessions,
            smaller_model=self.smaller_model,
            training=self.training,
        )


def run(words: Sequence[str], *, text: str | None) -> int:
    """Runs the command with what was given after its name; `text` is the head of its help."""
    options = parse_options(MakeTable, words, program="python -m benchmarks.paper", text=text)
    with terminable():
        return _run(options)


def _run(options: MakeTable) -> int:
    table, asked = load_table(options.table), options.asked()
    runs = planned_runs(table, asked)
    console = Console(highlight=False, soft_wrap=True)
    if options.dry_run:
        for line in _plan(table, runs):
            console.print(line, markup=False)
        return 0
    every = [one for of_variant in runs.values() for one in of_variant]
    _check_extras(table, trains=not all(seed_run.is_done() for seed_run in every))
    for place, seed_run in enumerate(every, 1):
        if not seed_run.is_done():
            _tell(f"run {place} of {len(every)}: {seed_run.folder}")
            train(seed_run)
    result = table_result(options.table, table, runs, asked)
    written = write(result, table, asked.out)
    show(result, table, results_console())
    console.print(f"Written: {', '.join(str(path) for path in written)}", markup=False)
    return 0


def _check_extras(table: PaperTable, *, trains: bool) -> None:
    """What is not installed is told before hours of work, not after."""
    if trains:
        load_with_extra("agents.llm_grpo.training_command:run", "train")
    if table.drawn_by_temperature:
        load_with_extra("benchmarks.paper.plot:draw", "report")


def _tell(line: str) -> None:
    """On the error stream, as the trainings do: standard output is the table's."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(line, markup=False)


def _plan(table: PaperTable, runs: Mapping[str | None, Sequence[SeedRun]]) -> Iterator[str]:
    """What each run has, and what it would take: steps, and rows to ask."""
    yield table.title
    for seed_run in (one for of_variant in runs.values() for one in of_variant):
        yield f"\n{seed_run.folder}" + ("" if seed_run.store.exists() else f" (would make {seed_run.store})")
        finished = seed_run.finished()
        for name, phase in seed_run.config.phases.items():
            state = "there" if name in finished else "to train" if phase.method != "none" else "to take"
            yield f"  {name:<26} {phase.method:<5} {state:<9} {_steps(seed_run.config, name)}"
        missing = [file for file in seed_run.files() if not file.exists()]
        yield f"  rows to ask about the {seed_run.config.evaluation.split} split: {len(missing)}"


def _steps(config: TrainConfig, name: str) -> str:
    phase = config.phases[name]
    if phase.method == "none":
        return "the model as it is" if phase.start == "model" else f"the weights of {phase.start}"
    if phase.same_time_as is not None:
        return f"as long as {phase.same_time_as} takes"
    if phase.method == "grpo":
        return f"{config.grpo_of(name).steps:,} steps"
    stages = config.sft_of(name).stages
    return " + ".join(f"{one.steps:,} steps" if one.steps is not None else f"{one.epochs:g} epochs" for one in stages)
