"""What was done in the paper and what is done here, aspect by aspect: the head of every table.

Nothing here is judged; what stands under `here` is read from the run's configuration, its store and its records.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from benchmarks.paper.published import PaperTable
from benchmarks.training_runs import PlannedRun
from shop_env.evaluation.log import read_log
from shop_env.evaluation.pooling import Tested
from train.config import SftConfig
from train.run.config import TrainConfig

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


class Aspect(msgspec.Struct, frozen=True, kw_only=True):
    """Something that decides the figures, there and here."""

    aspect: str
    paper: str
    here: str


def aspects(table: PaperTable, runs: Sequence[PlannedRun], tested: Tested, *, same_users: bool) -> list[Aspect]:
    """All of them; `runs` are those of the rows that are trained as the preset says."""
    here = _here(table, runs, tested, same_users)
    settings = table.source().settings
    return [Aspect(aspect=heading, paper=settings[name], here=here[name]) for name, heading in HEADINGS.items()]


def _here(table: PaperTable, runs: Sequence[PlannedRun], tested: Tested, same_users: bool) -> Mapping[str, str]:
    config = runs[0].config
    logged = ", ".join(f"{kind} {100 * share:.1f}%" for kind, share in tested.logged.items())
    left_out = f"; {tested.left_out:,} more left out, where a page did not fit" if tested.left_out else ""
    seeds = ", ".join(str(run.seed) for run in runs)
    return {
        "model": _model(config),
        "shoppers": _shoppers(runs, same_users),
        "rationales": f"in the log at {100 * tested.with_rationale:.0f}% of the tested steps",
        "context": _context(config, table.phases(None)),
        "sft": _sft(config.sft) if config.sft else "its phases' own",
        "rl": _rl(config),
        "weights": _weights(config),
        "decoding": f"T {config.evaluation.temperature:g}" + (", and greedy" if config.evaluation.greedy else ""),
        "tested": f"{tested.steps:,} actions of {tested.users:,} users in all seeds: {logged}{left_out}",
        "seeds": f"{seeds}; 95% intervals over " + ("seeds and users" if len(runs) > 1 else "users"),
    }


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
    of_rl = [config.context_of(name).rationales for name in phases if config.phases[name].method == "grpo"]
    return context + ("; RL: without past rationales" if of_rl and not any(of_rl) else "")


def _sft(sft: SftConfig) -> str:
    stages = [f"{one.steps:,} steps" if one.steps is not None else f"{one.epochs:g} epochs" for one in sft.stages]
    return f"{' + '.join(stages)}, at most {sft.sessions_per_batch} sessions a batch, lr {sft.optimizer.lr:g}"


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
