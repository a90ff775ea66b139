"""Reads presets (presets/*.toml), which say how to train a model, and rows (presets/rows/*.toml), which list phases.

preset   the learner: model, context, numbers of SFT and GRPO, validation, and default phases
base     another preset, by name or by a file beside it; a preset overrides the values of its base
rows     phases, with the context and the style of prompt that they share (a preset's style `compact` stays); numbers
         that a row leaves out come from the preset's phase of the same name

A phase may override some of the shared keys: `[phases.x.grpo] scale_rewards = "none"` keeps the other keys of `[grpo]`.

    file, base, rows ─► read_tables ─► changes (flags, or keys from Python) over them ─► complete phases ─► TrainConfig
"""

import tomllib
from collections.abc import Collection, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from agents.llm_grpo.config import TrainConfig, hyperparameters_table
from replay_sessions.foundation.config_errors import convert_fields, load_toml, toml_names
from replay_sessions.foundation.errors import BadConfig, did_you_mean

PRESETS: Any = resources.files("agents.llm_grpo") / "presets"
SHAPES: dict[str, dict[str, Any]] = tomllib.loads(PRESETS.parent.joinpath("shapes.toml").read_text(encoding="utf-8"))
HYPERPARAMETERS = ("sft", "grpo", "validation")
LENGTHS = {"steps": "epochs", "epochs": "steps"}  # keys of [grpo] that replace each other
SHARED = (*HYPERPARAMETERS, "context")  # tables of a run that its phases have too

Tables = dict[str, Any]


def preset_names() -> list[str]:
    """Returns the names of the presets that come with the package."""
    return toml_names(PRESETS)


def rows_names() -> list[str]:
    """Returns the names of the rows of papers' tables that come with the package."""
    return toml_names(PRESETS / "rows")


def load_preset(preset: str, rows: str | None = None, only: Collection[str] = ()) -> TrainConfig:
    """Returns the configuration of a preset.

    Args:
        preset: The name of a preset, or a .toml file.
        rows: The name or the .toml file of the phases; None means the preset's phases.
        only: The names of the phases to keep, with the phases that they need; empty means all.

    Raises:
        BadConfig: The preset does not exist, a key or phase is unknown, or a value is invalid.
    """
    return build_config(read_tables(preset, rows), f"preset '{preset}'", only)


def read_tables(preset: str, rows: str | None = None) -> Tables:
    """Returns the tables of a preset merged over those of its base.

    With `rows`, the phases are those of the rows, and the preset's phases of the same name provide missing numbers.

    Raises:
        BadConfig: The preset or the file of rows does not exist.
    """
    tables = _with_base(preset)
    if rows is None:
        return tables
    row_tables = load_toml(Tables, "rows", rows, PRESETS / "rows")
    learner = tables.get("phases", {})
    phases = {
        name: merge(_only(learner.get(name, {}), HYPERPARAMETERS), phase) if isinstance(phase, dict) else phase
        for name, phase in row_tables.get("phases", {}).items()
    }
    if tables.get("prompt", {}).get("style") == "compact":
        row_tables.pop("prompt", None)  # the learner cannot read instructions
    return merge(tables, row_tables) | {"phases": phases}


def build_config(tables: Tables, source: str, only: Collection[str] = ()) -> TrainConfig:
    """Builds the configuration with complete phases.

    Args:
        source: The name of the tables' source in messages.
        only: The names of the phases to keep, with the phases that they need; empty means all.

    Raises:
        BadConfig: A key or phase is unknown, or a value is invalid.
    """
    if isinstance(phases := tables.get("phases"), dict):
        tables = tables | {"phases": {name: _complete(phase, tables) for name, phase in phases.items()}}
    config = convert_fields(tables, TrainConfig, source)
    return _with_phases(config, only, source) if only else config


def _complete(phase: Any, tables: Tables) -> Any:
    """Returns a phase merged over the shared tables, without the table of numbers that its method does not read."""
    if not isinstance(phase, dict):
        return phase  # msgspec reports the wrong type
    unread = {"sft", "grpo"} - {hyperparameters_table(phase.get("method", "none"))}
    return merge(_only(tables, set(SHARED) - unread), phase)


def _only(tables: Tables, names: Collection[str]) -> Tables:
    return {name: tables[name] for name in names if name in tables}


def _with_phases(config: TrainConfig, only: Collection[str], source: str) -> TrainConfig:
    """Returns the configuration with these phases and the phases that they need, compared among each other alone.

    A phase needs the phase that it starts from and the phase in `same_compute_as`.
    """
    if unknown := [name for name in only if name not in config.phases]:
        raise BadConfig(f"{source} has no phase '{unknown[0]}'. {did_you_mean(unknown[0], config.phases)}")
    needed = set(only)
    for name, phase in reversed(config.phases.items()):  # a phase comes after those that it needs
        if name in needed:
            needed.update((phase.start, phase.same_compute_as or phase.start))
    phases = {
        name: msgspec.structs.replace(phase, against=tuple(other for other in phase.against if other in needed))
        for name, phase in config.phases.items()
        if name in needed
    }
    return msgspec.structs.replace(config, phases=phases)


def _with_base(preset: str, derived: tuple[str, ...] = ()) -> Tables:
    """Returns the tables of a preset merged over those of its base; `derived` are the presets on the way to it."""
    if preset in derived:
        raise BadConfig(f"the presets {' -> '.join([*derived, preset])} are each other's base; give one of them none.")
    tables = load_toml(Tables, "preset", preset, PRESETS)
    base = tables.pop("base", None)
    if base is None:
        return tables
    if not isinstance(base, str):
        raise BadConfig(f"preset '{preset}': base is {base!r}; give the name of a preset or a .toml file.")
    if base.endswith(".toml"):
        base = str(Path(preset).parent / base)
    return merge(_with_base(base, (*derived, preset)), tables)


def merge(table: Mapping[str, Any], over: Mapping[str, Any]) -> Tables:
    """Returns `table` overridden by the values of `over`; nested tables are merged, lists are replaced.

    A length in steps replaces one in epochs, and the other way round.
    """
    lengths = {other for key, other in LENGTHS.items() if not isinstance(over.get(key), Mapping | None)}
    table = {key: value for key, value in table.items() if key not in lengths}
    nested = {key for key in over if isinstance(over[key], Mapping) and isinstance(table.get(key), Mapping)}
    return {**table, **over, **{key: merge(table[key], over[key]) for key in nested}}
