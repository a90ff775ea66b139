"""Adds up the hours, tokens and memory of a sweep's missing trainings: `shop-r1 sweep … --dry-run`.

PlannedRun ─► agents/llm_grpo/run_plan.py, once for each run of the file ─► a table over all seeds
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from benchmarks.sweep.runs import PlannedRun, SweepOptions
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.table import Table, columns
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
    gpus_per_run = options.machine.gpus or options.gpus_per_run
    machine = get_machine(msgspec.structs.replace(options.machine, gpus=gpus_per_run))
    gpus = machine.gpus if machine.is_gpu else ()
    rows: dict[str, list[float]] = {}
    for name, runs in missing.items():
        run = runs[0]
        assert run.config is not None
        if not run.store.exists():
            yield f"{name}: not estimated, because its demo shop is written with the first run."
            continue
        planned_phases = plan_run(run.config, SessionStore.open(run.store), machine).phases
        phases = [phase for phase_name, phase in planned_phases.items() if phase_name in run.missing_phases]
        tokens = sum(phase.batch_tokens * (phase.steps or 0) for phase in phases) / 1e6
        hours = (sum(phase.hours(gpu, machine) for phase in phases) for gpu in gpus)
        costs = [len(runs) * cost for cost in (tokens, *hours)]
        rows[name] = [len(runs), len(phases), *costs, max((phase.peak_bytes for phase in phases), default=0) / GIB]
    if not rows:
        return
    *sums, peaks = zip(*rows.values(), strict=True)
    rows["all"] = [*map(sum, sums), max(peaks)]
    points = ("million tokens", *(f"{gpu.upper()} hours" for gpu in gpus), "GiB")
    heads = columns("missing trainings", count=("seeds", "phases"), points=points)
    yield Table(columns=heads, rows=[[name, *values] for name, values in rows.items()])
    yield (
        "Tokens of training batches, without sampling and phases of the same compute; GiB of each of "
        f"{machine.processes} processes of a run. {HOURS_MEAN if gpus else 'Hours are stated with --machine.gpu.'}"
    )
