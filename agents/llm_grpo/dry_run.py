"""Prints the estimates of a run without training: `shop-r1 train … --dry-run` (run_plan.py makes them).

It takes seconds, because it reads no weights.
"""

import shlex
from collections.abc import Iterator, Sequence

from agents.llm_grpo.character_tokens import CHARACTERS_A_TOKEN, FEWEST, MOST
from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.data import rationale_coverage, tie_lines
from agents.llm_grpo.run_plan import GIB, Machine, RunPlan, plan_run
from replay_sessions.foundation.table import Cell, Table, columns
from replay_sessions.store import SessionStore
from train.memory import ROOM

POINTER_COST = "A pointer takes minutes of one CPU core and 2 GB of memory per 60,000 steps; there is nothing to plan."
HOURS_MEAN = (
    "Hours of training, by FLOPs and the speed that was measured on an H200; of other GPUs by their data sheets. "
    "Replies have the longest length. Validation and the final table come on top; models below 0.5B and small batches "
    "take longer."
)
COLUMNS = columns(
    *("phase", "method", "passes"),
    count=("steps", "tokens a step", "largest pass"),
    percent=("page cut", "target shown", "pages lost", "left out"),
    points=("GiB",),
)


def dry_run(
    config: TrainConfig, store: SessionStore, machine: Machine, argv: Sequence[str] = ()
) -> Iterator[Table | str]:
    """Yields the output of the command: tables of the phases and of hours, and lines on memory and rationales.

    Args:
        argv: The arguments of the command line.

    Raises:
        CheckpointMismatch: The configuration or the tokenizer of the model cannot be read.
    """
    if all(map(config.is_pointer, config.phases)):
        yield POINTER_COST
        return
    plan, ids = plan_run(config, store, machine), store.session_ids("train")
    rows: list[list[Cell]] = []
    for name, phase in plan.phases.items():
        steps = "*" if phase.steps is None else phase.steps
        counts: list[Cell] = [name, phase.method, str(phase.passes), steps, phase.batch_tokens, phase.pass_tokens]
        rows.append([*counts, *phase.shares[1:], phase.peak_bytes / GIB])
    yield Table(columns=COLUMNS, rows=rows)
    if machine.is_gpu:
        yield from _hours(plan, machine)
    yield (
        f"Estimated from {sum(plan.targets.values())} steps of {len(plan.sessions)} of {len(ids)} training sessions, "
        "drawn at random. *: as many as have the same FLOPs."
    )
    yield (
        "page cut, target shown, pages lost, left out: of 100 steps with a logged target, those that show a window of "
        "their own page, that show the logged element or need none, that show nothing of some earlier page, and that "
        f"do not fit {config.model.max_prompt_tokens:,} tokens (model.long_pages = {config.model.long_pages}). Tables "
        "count what does not fit as a miss."
    )
    yield from plan.remarks
    yield from tie_lines(config, store)
    yield from _machine_lines(plan, machine, argv)
    if not plan.has_texts:
        yield (
            f"The hub gives no '{config.model.path}' now: its shape is known, and tokens are counted as "
            f"{CHARACTERS_A_TOKEN} characters each. Pages have {FEWEST} to {MOST}: "
            f"{CHARACTERS_A_TOKEN / FEWEST - 1:.0%} more tokens to {1 - CHARACTERS_A_TOKEN / MOST:.0%} fewer."
        )
    rationales = rationale_coverage(plan.sessions, inferred=config.inferred)
    yield rationales.problem(config) or str(rationales)


def _hours(plan: RunPlan, machine: Machine) -> Iterator[Table | str]:
    """Yields a table of the hours of each phase on the machine's GPUs, or of several kinds, and what they mean."""
    gpus = machine.gpus
    rows: list[list[Cell]] = [
        [name, *(phase.hours(gpu, machine) for gpu in gpus)] for name, phase in plan.phases.items()
    ]
    yield Table(columns=columns("hours of phase", points=tuple(gpu.upper() for gpu in gpus)), rows=rows)
    yield HOURS_MEAN


def _machine_lines(plan: RunPlan, machine: Machine, argv: Sequence[str]) -> Iterator[str]:
    fits = plan.fits(machine)
    yield (
        f"{'Enough' if fits else 'Too little'} memory in {machine.process_bytes / GIB:.0f} GiB of each process; "
        f"{1 - ROOM:.0%} is left to the allocator and kernels."
    )
    if not fits:
        yield (
            "Less memory: a lower max_batch_tokens, model.gradient_checkpointing, model.precision bfloat16_autocast, "
            "model.lora, model.sharded over several GPUs."
        )
    if machine.processes > 1:
        yield f"Launch: {launch_line(argv, machine.processes)}"


def launch_line(argv: Sequence[str], processes: int) -> str:
    """Returns the command that trains with several processes what the arguments of a dry run plan.

    >>> launch_line(["--seed", "3", "--dry-run", "--machine.gpus", "8", "--machine.gpu=h100"], 8)
    'torchrun --nproc-per-node 8 -m agents.llm_grpo.train --seed 3'
    """
    training, is_value = [], False
    for word in argv:
        flag = word.replace("_", "-")
        if not is_value and flag != "--dry-run" and not flag.startswith("--machine."):
            training.append(word)
        is_value = not is_value and flag.startswith("--machine.") and "=" not in flag
    return shlex.join(["torchrun", "--nproc-per-node", str(processes), "-m", "agents.llm_grpo.train", *training])
