"""The runs of a table: one of the training command for each seed and recipe (benchmarks/training_runs.py trains them).

OUT/store0                       seed 0's demo shop, where no store is given
OUT/shop_r1/seed0                its run for all tables of Shop-R1: run.json, checkpoints, agents/*/
OUT/customer_r1/seed0            …of Customer-R1
OUT/customer_r1-smaller_model/seed0     rows that are trained otherwise
"""

from pathlib import Path
from typing import Annotated

import msgspec
import tyro

from benchmarks.paper.published import PaperTable, Variant
from benchmarks.training_runs import PlannedRun, find_store, parse_seeds, plan_run
from replay_sessions.foundation.errors import BadConfig, check_at_least
from train.run.config import TrainConfig
from train.run.options import prepare

Runs = dict[str | None, list[PlannedRun]]  # by variant, one for each seed


class PaperOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Makes a table of a paper.

    Attributes:
        table: Which one; `--help` lists them above.
        preset: The model and how it learns: tiny_cpu, smollm2_cpu, …, or a .toml FILE.
        seeds: Whole numbers, separated by spaces or commas.
        store: One store for all seeds; None: the preset's, or a demo shop for each seed.
        sessions: So many of the test split; None: as many as the preset says.
        out: The runs and the tables; None: runs/paper-PRESET.
        smaller_model: For customer6 and a preset that names a model: its smaller one.
        processes: So many runs are trained at a time.
        dry_run: Print what is trained already and what would be, and do nothing.
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
    processes: int = 1
    dry_run: bool = False

    def __post_init__(self) -> None:
        check_at_least(1, sessions=self.sessions, processes=self.processes)

    @property
    def folder(self) -> Path:
        return self.out or Path("runs") / f"paper-{Path(self.preset).stem}"


def plan_table(table: PaperTable, options: PaperOptions) -> Runs:
    """The runs of a table; nothing is written.

    Raises:
        BadConfig: A flag is wrong, or a folder holds a run of another configuration.
        CheckpointMismatch: A folder holds a run on another store.
    """
    seeds = parse_seeds(options.seeds)
    return {variant: [_plan_seed(table, variant, seed, options) for seed in seeds] for variant in table.runs()}


def _plan_seed(table: PaperTable, variant: str | None, seed: int, options: PaperOptions) -> PlannedRun:
    phases = table.phases(variant)
    words = ["--preset", options.preset, "--rows", table.rows_file, "--only", *phases]
    if options.sessions is not None:
        words += ["--evaluation.sessions", str(options.sessions)]
    words += options.training
    flags: list[str] = []
    if variant is not None:
        _, _, config = prepare([*words, "--dry-run"])
        flags = _variant_flags(variant, table.variants[variant], config, options)
    folder = options.folder / "-".join(filter(None, (table.paper, variant))) / f"seed{seed}"
    store = find_store(options.store, options.preset, options.folder, seed)
    return plan_run(words, flags, folder=folder, seed=seed, store=store, phases=phases)


def _variant_flags(name: str, variant: Variant, config: TrainConfig, options: PaperOptions) -> list[str]:
    """The flags that make a variant of the preset.

    Args:
        config: Of a run without them.

    Raises:
        BadConfig: A smaller model is needed, and none is named.
    """
    flags = []
    model = config.model
    if variant.max_tokens is not None:
        share = round(variant.max_tokens * model.max_tokens)
        flags += ["--model.max-tokens", str(variant.max_tokens_of.get(Path(options.preset).stem, share))]
    if variant.width is not None and model.path is None:
        for size in ("hidden_size", "intermediate_size"):
            flags += [f"--model.tiny.{size.replace('_', '-')}", str(round(variant.width * getattr(model.tiny, size)))]
    elif variant.width is not None:
        if options.smaller_model is None:
            raise BadConfig(f"the rows of '{name}' need a model smaller than '{model.path}': give --smaller-model.")
        flags += ["--model.path", options.smaller_model]
    return flags
