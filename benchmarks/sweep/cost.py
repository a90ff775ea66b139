"""Adds up the hours, tokens and memory of a sweep's missing trainings: `shop-r1 sweep … --dry-run`.

PlannedRun ─► agents/llm_grpo/run_plan.py, once for each run of the file ─► a table over all seeds
"""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.sweep.runs import PlannedRun, SweepOptions
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.table import Cell, Table, columns
from replay_sessions.store import SessionStore


def estimate_cost(planned: Mapping[str, Sequence[PlannedRun]], options: SweepOptions) -> Iterator[Table | str]:
    """Yields a table of what the missing trainings cost, and what it means; nothing if none is missing.

    The seeds of a run differ little, so that one stands for all. Hours are stated of GPUs only.
    """
    missing = {name: [run for run in runs if run.config and not run.is_finished] for name, runs in planned.items()}
    missing = {name: runs for name, runs in missing.items() if runs}
    if not missing:
        return
    with requires_extra("train"):
        from agents.llm_grpo.dry_run import HOURS_MEAN  # noqa: PLC0415 - torch may be missing
        from agents.llm_grpo.run_plan import GIB, get_machine, plan_run  # noqa: PLC0415
    machine = get_machine(options.machine)
    gpus = machine.gpus if machine.is_gpu else ()
    rows: list[list[Cell]] = []
    for name, runs in missing.items():
        run = runs[0]
        assert run.config is not None
        if not run.store.exists():
            yield f"{name}: not estimated, because its demo shop is written with the first run."
            continue
        phases = [
            phase
            for phase_name, phase in plan_run(run.config, SessionStore.open(run.store), machine).phases.items()
            if phase_name in run.missing_phases
        ]
        tokens = sum(phase.batch_tokens * (phase.steps or 0) for phase in phases)
        hours = [sum(phase.hours(gpu, machine) for phase in phases) for gpu in gpus]
        peak = max((phase.peak_bytes for phase in phases), default=0) / GIB
        rows.append(
            [name, len(runs), len(phases), len(runs) * tokens / 1e6, peak, *(len(runs) * each for each in hours)]
        )
    if not rows:
        return
    total: list[Cell] = ["all", *(sum(row[column] for row in rows) for column in (1, 2, 3))]  # type: ignore[misc]
    total += [max(row[4] for row in rows), *(sum(row[5 + number] for row in rows) for number in range(len(gpus)))]  # type: ignore[type-var, misc]
    hours_of = tuple(f"{gpu.upper()} hours" for gpu in gpus)
    heads = columns("missing trainings", count=("seeds", "phases"), points=("million tokens", "GiB", *hours_of))
    yield Table(columns=heads, rows=[*rows, total])
    yield (
        f"Tokens of training batches, without sampling and phases of the same compute; GiB of each of "
        f"{machine.processes} processes of a run. {HOURS_MEAN if gpus else 'Hours are stated with --machine.gpu.'}"
    )
