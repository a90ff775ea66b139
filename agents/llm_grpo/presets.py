"""Presets (presets/*.toml): how a model is trained; rows (presets/rows/*.toml): which phases of a table.

preset   the learner: model, context, numbers of SFT and GRPO, validation, and default phases
base     another preset, by name or by a file beside it, whose values a preset overrides
rows     phases alone; a phase of the same name in the preset gives the numbers that the rows leave out

A phase may override some of what phases share: `[phases.x.grpo] scale_rewards = "none"` keeps all else of `[grpo]`.

    file, base, rows ─► read_tables ─► changes (flags, or keys from Python) over them ─► complete phases ─► TrainConfig

A run that exists can be extended by the phases of another table, and by agents to evaluate beside them:

    run.json's configuration ─┐
    that of the call ─────────┴─► extend_config ─► the same run, with the phases and agents that it lacked at its end

A phase follows from its own numbers, the model, the store, the seed, and the phases that it starts from or whose time
it takes; no other phase affects it. So all but the phases must be equal, and so must phases of the same name. Their
labels, comparisons and further temperatures belong to the table and may differ, and so may the agents beside them.
"""

import json
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from agents.llm_grpo.config import TrainConfig, numbers_table
from replay_sessions.foundation.config_errors import convert_fields, what_is_wrong
from replay_sessions.foundation.durable_files import replace_json
from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch, did_you_mean
from replay_sessions.foundation.locks import TRAINING_LOCK
from replay_sessions.foundation.provenance import provenance
from replay_sessions.store import SessionStore
from train.metrics_file import METRICS_FILE

PRESETS: Any = resources.files("agents.llm_grpo") / "presets"
NUMBERS = ("sft", "grpo", "validation")
SHARED = (*NUMBERS, "context")  # tables of a run that its phases have too

Tables = dict[str, Any]


def preset_names(folder: Any = PRESETS) -> list[str]:
    """The presets that come with the package."""
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def rows_names() -> list[str]:
    """The rows of papers' tables that come with the package."""
    return preset_names(PRESETS / "rows")


def load_preset(preset: str, rows: str | None = None, only: Collection[str] = ()) -> TrainConfig:
    """A preset by name or file, with its own phases or those of `rows`, likewise by name or file.

    Args:
        only: Only the phases of these names, and those that they need; empty: all.

    Raises:
        BadConfig: No such preset, an unknown key or phase, or a value that does not fit.
    """
    return build_config(read_tables(preset, rows), f"preset '{preset}'", only)


def read_tables(preset: str, rows: str | None = None) -> Tables:
    """A preset's tables over those of its base; with `rows`, of its phases only numbers of equal names are left.

    Raises:
        BadConfig: There is no such preset or no such file of rows.
    """
    tables = _with_base(preset)
    if rows is None:
        return tables
    own = _read("rows", rows, PRESETS / "rows")
    learner = tables.get("phases", {})
    phases = {
        name: merge(_only(learner.get(name, {}), NUMBERS), phase) if isinstance(phase, dict) else phase
        for name, phase in own.get("phases", {}).items()
    }
    return tables | own | {"phases": phases}


def build_config(tables: Tables, source: str, only: Collection[str] = ()) -> TrainConfig:
    """The configuration with complete phases.

    Args:
        source: Of the tables, in messages.
        only: As for `load_preset`.

    Raises:
        BadConfig: An unknown key or phase, or a value that does not fit.
    """
    if isinstance(phases := tables.get("phases"), dict):
        tables = tables | {"phases": {name: _complete(phase, tables) for name, phase in phases.items()}}
    config = convert_fields(tables, TrainConfig, source)
    return _with_phases(config, only, source) if only else config


def _complete(phase: Any, tables: Tables) -> Any:
    """A phase with what it shares; of the tables of numbers, only with the one that its method reads."""
    if not isinstance(phase, dict):
        return phase  # msgspec says what is wrong with it
    unread = {"sft", "grpo"} - {numbers_table(phase.get("method", "none"))}
    return merge(_only(tables, set(SHARED) - unread), phase)


def _only(tables: Tables, names: Collection[str]) -> Tables:
    return {name: tables[name] for name in names if name in tables}


def _with_phases(config: TrainConfig, only: Collection[str], source: str) -> TrainConfig:
    """With these phases and those that they start from, or whose time they take, compared among themselves alone."""
    if unknown := [name for name in only if name not in config.phases]:
        raise BadConfig(f"{source} has no phase '{unknown[0]}'. {did_you_mean(unknown[0], config.phases)}")
    needed = set(only)
    for name, phase in reversed(config.phases.items()):  # a phase comes after those that it needs
        if name in needed:
            needed.update((phase.start, phase.same_time_as or phase.start))
    phases = {
        name: msgspec.structs.replace(phase, against=tuple(other for other in phase.against if other in needed))
        for name, phase in config.phases.items()
        if name in needed
    }
    return msgspec.structs.replace(config, phases=phases)


def _with_base(preset: str, derived: tuple[str, ...] = ()) -> Tables:
    """A preset's tables over those of its base."""
    if preset in derived:
        raise BadConfig(f"the presets {' -> '.join([*derived, preset])} are each other's base; give one of them none.")
    own = _read("preset", preset, PRESETS)
    base = own.pop("base", None)
    if base is None:
        return own
    if not isinstance(base, str):
        raise BadConfig(f"preset '{preset}': base is {base!r}; give the name of a preset or a .toml file.")
    if base.endswith(".toml"):
        base = str(Path(preset).parent / base)
    return merge(_with_base(base, (*derived, preset)), own)


def merge(table: Mapping[str, Any], over: Mapping[str, Any]) -> Tables:
    """`table` with the values of `over` in their places; tables within are merged, lists replaced."""
    both = {key for key in over if isinstance(over[key], Mapping) and isinstance(table.get(key), Mapping)}
    return {**table, **over, **{key: merge(table[key], over[key]) for key in both}}


def _read(kind: str, name: str, folder: Any) -> Tables:
    """The tables of a file that comes with the package, or of the user's own."""
    is_file = name.endswith(".toml")
    if not is_file and name not in preset_names(folder):
        hint = did_you_mean(name, preset_names(folder))
        raise BadConfig(f"Unknown {kind} '{name}'. {hint} Or give the path of a .toml file.")
    try:
        return tomllib.loads((Path(name) if is_file else folder / f"{name}.toml").read_text(encoding="utf-8"))
    except OSError as error:
        raise BadConfig(f"the {kind} file '{name}' cannot be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"the {kind} file '{name}' is no valid TOML: {error}.") from error


# Nothing that is trained or evaluated follows from these. The path of the store may differ, its fingerprint may not.
FREE = ("store", "save_every_s", "watch")
OF_THE_TABLE = ("label", "against", "temperatures", "several_seeds")
ROWS_BESIDE = ("agents", "most_probable_action")

T = TypeVar("T")


def read_config(folder: Path) -> TrainConfig:
    """The configuration of the run in a folder.

    Raises:
        BadConfig: There is no run, or its configuration cannot be read.
    """
    try:
        record: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        return msgspec.convert(record["config"], TrainConfig)
    except FileNotFoundError as error:
        raise BadConfig(f"'{folder}' holds no run to go on with: it has no run.json.") from error
    except (ValueError, KeyError) as error:
        reason = what_is_wrong(error, TrainConfig).rstrip(".")
        raise BadConfig(f"'{folder}/run.json' cannot be read: {reason}. Start a new run.") from error


def has_begun(folder: Path) -> bool:
    """Whether the folder holds a run. One that failed before its first step is none: its call can be corrected."""
    if not (folder / "run.json").exists():
        return False
    metrics = folder / METRICS_FILE
    others = {file.name for file in folder.iterdir()} - {"run.json", METRICS_FILE, TRAINING_LOCK}
    return bool(others) or not metrics.exists() or metrics.stat().st_size > 0


def check_store(folder: Path, store: SessionStore) -> None:
    """A run goes on with the sessions that it began with, or not at all.

    Raises:
        CheckpointMismatch: The run in `folder` began with another store.
    """
    begun_with = json.loads((folder / "run.json").read_text(encoding="utf-8"))["store"]["fingerprint"]
    if begun_with != store.fingerprint:
        raise CheckpointMismatch(
            f"the run in '{folder}' began with store {begun_with[:12]}, but '{store.path}' is now "
            f"{store.fingerprint[:12]}. Put the former store back, or start a new run."
        )


def extend_config(begun: TrainConfig, config: TrainConfig, folder: Path) -> TrainConfig:
    """The configuration of the run in `folder`, with the phases and agents of `config` that it lacks.

    Raises:
        BadConfig: They differ in more than their phases and agents.
    """
    shared = begun.phases.keys() & config.phases.keys()
    if differing := sorted(_differences(_decisive(begun, shared), _decisive(config, shared))):
        raise BadConfig(
            f"'{folder}' holds a run of another configuration ({'; '.join(differing)}): give another --out, or the "
            "same options."
        )
    phases = config.phases | begun.phases
    for name in shared:
        first, second = begun.phases[name], config.phases[name]
        phases[name] = msgspec.structs.replace(
            first,
            against=_union(first.against, second.against),
            temperatures=_union(first.temperatures, second.temperatures),
        )
    evaluation = msgspec.structs.replace(
        config.evaluation, agents=_union(begun.evaluation.agents, config.evaluation.agents)
    )
    in_order = {name: phases[name] for name in _union(begun.phases, config.phases)}
    return msgspec.structs.replace(config, phases=in_order, evaluation=evaluation)


def record_extension(folder: Path, config: TrainConfig, store: SessionStore) -> None:
    """Writes the extension to run.json, in one step: before, it is the former run, afterwards the longer one."""
    begun = read_config(folder)
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
    replace_json(folder / "run.json", record)


def _union(first: Iterable[T], second: Iterable[T]) -> tuple[T, ...]:
    """Both without repetition, in order."""
    return tuple(dict.fromkeys([*first, *second]))


def _decisive(config: TrainConfig, phases: Collection[str]) -> dict[str, Any]:
    """What of a configuration decides these phases and how they are evaluated."""
    tables: dict[str, Any] = msgspec.to_builtins(config)
    for name in FREE:
        del tables[name]
    del tables["model"]["gradient_checkpointing"]  # what is kept in memory, and changes no number
    for name in ROWS_BESIDE:
        del tables["evaluation"][name]
    tables["phases"] = {
        name: {key: value for key, value in tables["phases"][name].items() if key not in OF_THE_TABLE}
        for name in phases
    }
    return tables


def _differences(first: Any, second: Any, path: str = "") -> Iterator[str]:
    """Key by key: `grpo.steps: 70, now 5`."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in first.keys() | second.keys():
            yield from _differences(first.get(key), second.get(key), f"{path}.{key}" if path else key)
    elif first != second:
        yield f"{path}: {json.dumps(first)}, now {json.dumps(second)}"
