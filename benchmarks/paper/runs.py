"""The runs of a table: one of the training command for each seed and recipe (benchmarks/training_runs.py trains them).

OUT/store0                       seed 0's demo shop, where no store is given
OUT/shop_r1/seed0                its run for all tables of Shop-R1: run.json, checkpoints, agents/*/
OUT/customer_r1/seed0            …of Customer-R1
OUT/customer_r1-smaller_model/seed0     rows that are trained otherwise

What was done in the paper and what is done here, aspect by aspect, is the head of every table. Nothing here is judged;
what stands under `here` is read from the run's configuration, its store and its records.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.options import prepare
from benchmarks.paper.published import PaperTable, Variant
from benchmarks.training_runs import PlannedRun, TrainingOptions, find_store, format_stages, parse_seeds, plan_run
from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.records import Record
from shop_env.evaluation.comparing import Tested
from shop_env.evaluation.log import read_log
from train.config import SftConfig

HEADINGS = {
    "model": "model",
    "shoppers": "shoppers",
    "rationales": "their rationales",
    "context": "context",
    "sft": "SFT",
    "rl": "RL",
    "weights": "weights kept",
    "decoding": "decoding",
    "tested": "tested on",
    "seeds": "seeds",
}

Runs = dict[str | None, list[PlannedRun]]  # by variant, one for each seed


class PaperOptions(TrainingOptions):
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

    table: str
    seeds: tuple[str, ...] = ("0", "1", "2")
    sessions: int | None = None
    out: Path | None = None
    smaller_model: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, sessions=self.sessions)

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


class Aspect(Record):
    """Something that decides the figures, there and here."""

    aspect: str
    paper: str
    here: str


def aspects(table: PaperTable, runs: Sequence[PlannedRun], tested: Tested, *, same_users: bool) -> list[Aspect]:
    """All of them; `runs` are those of the rows that are trained as the preset says."""
    config = runs[0].config
    logged = ", ".join(f"{kind} {100 * share:.1f}%" for kind, share in tested.logged.items())
    left_out = f"; {tested.left_out:,} more left out, where a page did not fit" if tested.left_out else ""
    seeds = ", ".join(str(run.seed) for run in runs)
    here = {
        "model": _model(config),
        "shoppers": _shoppers(runs, same_users),
        "rationales": f"in the log at {100 * tested.with_rationale:.0f}% of the tested steps",
        "context": _context(config, table.phases(None)),
        "sft": _sft(config.sft) if config.sft else "its phases' own",
        "rl": _rl(config),
        "weights": _weights(config),
        "decoding": ", and ".join(decoding.name for decoding in config.evaluation.decodings),
        "tested": f"{tested.steps:,} actions of {tested.users:,} users in all seeds: {logged}{left_out}",
        "seeds": f"{seeds}; 95% intervals over " + ("seeds and users" if len(runs) > 1 else "users"),
    }
    settings = table.source().settings
    return [Aspect(aspect=heading, paper=settings[name], here=here[name]) for name, heading in HEADINGS.items()]


def _model(config: TrainConfig) -> str:
    if config.model.path is not None:
        trained = "" if config.model.lora is None else f", LoRA of rank {config.model.lora.rank}"
        return f"{config.model.path.rpartition('/')[2]}, {config.model.computed_in}{trained}"
    tiny = config.model.tiny
    return f"trained from scratch for each store: width {tiny.hidden_size}, layers {tiny.layers}"


def _shoppers(runs: Sequence[PlannedRun], same_users: bool) -> str:
    store: dict[str, Any] = runs[0].provenance()["store"]
    training = read_log(runs[0].folder).training
    held_out = (
        "held-out users" if training and training.users_held_out else "held-out sessions, some of users trained on"
    )
    which = "for all seeds" if same_users or len(runs) == 1 else "and others for each seed"
    return f"{store['sessions']:,} sessions of {store['source']} {which}; {held_out}"


def _context(config: TrainConfig, phases: Sequence[str]) -> str:
    context = f"{config.context.scope.replace('_', ' ')}, {config.model.max_tokens:,} tokens, "
    context += f"persona {config.context.persona}"
    of_rl = [config.context_of(name).rationales for name in phases if config.phases[name].numbers == "grpo"]
    return context + ("; RL: without past rationales" if of_rl and not any(of_rl) else "")


def _sft(sft: SftConfig) -> str:
    return f"{format_stages(sft)}, at most {sft.sessions_per_batch} sessions a batch, lr {sft.optimizer.lr:g}"


def _rl(config: TrainConfig) -> str:
    grpo = config.grpo
    if grpo is None:
        return "its phases' own"
    batch = f"at most {grpo.sessions_per_batch} sessions"
    if grpo.steps_per_batch is not None:
        batch = f"{grpo.steps_per_batch} <context, action> pairs, {grpo.balance}"
    sampling = f"{grpo.num_generations} replies each, lr {grpo.optimizer.lr:g}, T {grpo.temperature:g}"
    return f"{grpo.steps} steps of {batch}, {sampling}"


def _weights(config: TrainConfig) -> str:
    rule = config.validation
    if not rule.times:
        return "the last"
    return f"those of the best exact match on {rule.sessions} other sessions, seen {rule.times} times"
