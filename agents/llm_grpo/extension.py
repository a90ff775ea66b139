"""More rows for a run that is there already: the phases of another table, and agents to stand beside them.

    run.json's configuration ─┐
    the one asked for ────────┴─► extended ─► the same run, with the phases and agents that it lacked at its end

This is right because a phase follows from its own numbers, the model, the store, the seed, and the phases that it
starts from or whose time it takes; no other phase has any part in it. So all but the phases must be equal, and so must
phases of one name: how they are called, what they are compared with, at which temperatures they are tested besides, and
which agents stand beside them is the table's affair.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from agents.llm_grpo.config import PhaseConfig, TrainConfig
from replay_sessions.errors import BadConfig
from replay_sessions.provenance import provenance
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file

__all__ = ["begun_config", "extended", "note_extension"]

# Compared by themselves: phases and evaluation. What may differ: where the store lies (its fingerprint may not), and
# what no weight and no figure follows from.
FREE = ("phases", "evaluation", "store", "save_every_s", "watch")
OF_THE_TABLE = ("label", "against", "temperatures")

T = TypeVar("T")


def begun_config(folder: Path) -> TrainConfig:
    """The configuration of the run in a folder."""
    try:
        table: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        return msgspec.convert(table["config"], TrainConfig)
    except FileNotFoundError as error:
        raise BadConfig(f"'{folder}' holds no run to go on with: it has no run.json.") from error
    except (ValueError, KeyError) as error:
        raise BadConfig(f"'{folder}/run.json' cannot be read: {error}. Start a new run.") from error


def extended(begun: TrainConfig, asked: TrainConfig, folder: Path) -> TrainConfig:
    """The configuration of a run that was begun, with the phases and agents of the one asked for that it lacks.

    Raises:
        BadConfig: They differ in more than which of them they have.
    """
    evaluation = msgspec.structs.replace(
        asked.evaluation, agents=_together(begun.evaluation.agents, asked.evaluation.agents)
    )
    one_table = msgspec.structs.replace(begun.evaluation, agents=evaluation.agents)
    differing = list(_differences(_without(begun, FREE), _without(asked, FREE)))
    differing += _differences(_without(one_table, ()), _without(evaluation, ()), "evaluation.")
    for name in begun.phases.keys() & asked.phases.keys():
        one, other = (_without(config.phases[name], OF_THE_TABLE) for config in (begun, asked))
        differing += _differences(one, other, f"phases.{name}.")
    if differing:
        raise BadConfig(
            f"'{folder}' holds a run of another configuration ({'; '.join(sorted(differing))}): give another --out, or "
            "the same options."
        )
    phases = {
        name: _with_more(phase, asked.phases[name]) if name in asked.phases else phase
        for name, phase in begun.phases.items()
    }
    phases |= {name: phase for name, phase in asked.phases.items() if name not in phases}
    return msgspec.structs.replace(asked, phases=phases, evaluation=evaluation)


def note_extension(folder: Path, config: TrainConfig, store: SessionStore) -> None:
    """Writes to run.json what was extended, in one step: before, it is the former run, afterwards the longer one."""
    begun = begun_config(folder)
    if config == begun:
        return
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    now = provenance(msgspec.to_builtins(config), store=store, seed=config.seed)
    added = {
        "phases": [name for name in config.phases if name not in begun.phases],
        "agents": [name for name in config.evaluation.agents if name not in begun.evaluation.agents],
    }
    record["config"] = now["config"]
    record.setdefault("extended", []).append(added | {key: now[key] for key in ("time", "commit", "dirty")})
    replace_file(folder / "run.json", json.dumps(record, indent=2) + "\n")


def _with_more(phase: PhaseConfig, asked: PhaseConfig) -> PhaseConfig:
    """Compared with, and tested at, what either of them names."""
    return msgspec.structs.replace(
        phase,
        against=_together(phase.against, asked.against),
        temperatures=_together(phase.temperatures, asked.temperatures),
    )


def _together(begun: Sequence[T], asked: Sequence[T]) -> tuple[T, ...]:
    """What was there first, then what is new."""
    return tuple(dict.fromkeys([*begun, *asked]))


def _without(config: msgspec.Struct, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(config).items() if name not in names}


def _differences(one: Any, other: Any, at: str = "") -> Iterator[str]:
    """In words, by key: `grpo.steps: 70, now 5`."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            yield from _differences(one.get(key), other.get(key), f"{at}{key}.")
    elif one != other:
        yield f"{at.removesuffix('.')}: {json.dumps(one)}, now {json.dumps(other)}"
