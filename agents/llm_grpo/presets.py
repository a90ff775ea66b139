"""Presets (presets/*.toml): how a model is trained; rows (presets/rows/*.toml): which phases of a table.

preset   the learner: model, context, numbers of SFT and GRPO, validation, and default phases
base     another preset, by name or by a file beside it, whose values a preset overrides
rows     phases, and the context and the style of prompt that they share (a preset's `compact` stays); a phase of the
         same name in the preset gives the numbers that the rows leave out

A phase may override some of what phases share: `[phases.x.grpo] scale_rewards = "none"` keeps all else of `[grpo]`.

    file, base, rows ─► read_tables ─► changes (flags, or keys from Python) over them ─► complete phases ─► TrainConfig
"""

import tomllib
from collections.abc import Collection, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from agents.llm_grpo.config import TrainConfig, numbers_table
from replay_sessions.foundation.config_errors import convert_fields, load_toml, toml_names
from replay_sessions.foundation.errors import BadConfig, did_you_mean

PRESETS: Any = resources.files("agents.llm_grpo") / "presets"
SHAPES: dict[str, dict[str, Any]] = tomllib.loads(PRESETS.parent.joinpath("shapes.toml").read_text(encoding="utf-8"))
NUMBERS = ("sft", "grpo", "validation")
SHARED = (*NUMBERS, "context")  # tables of a run that its phases have too

Tables = dict[str, Any]


def preset_names() -> list[str]:
    """The presets that come with the package."""
    return toml_names(PRESETS)


def rows_names() -> list[str]:
    """The rows of papers' tables that come with the package."""
    return toml_names(PRESETS / "rows")


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
    own = load_toml(Tables, "rows", rows, PRESETS / "rows")
    learner = tables.get("phases", {})
    phases = {
        name: merge(_only(learner.get(name, {}), NUMBERS), phase) if isinstance(phase, dict) else phase
        for name, phase in own.get("phases", {}).items()
    }
    if tables.get("prompt", {}).get("style") == "compact":
        own.pop("prompt", None)  # a learner that cannot read instructions
    return merge(tables, own) | {"phases": phases}


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
    """With these phases and those that they start from, or whose compute they have, compared among themselves alone."""
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
    """A preset's tables over those of its base."""
    if preset in derived:
        raise BadConfig(f"the presets {' -> '.join([*derived, preset])} are each other's base; give one of them none.")
    own = load_toml(Tables, "preset", preset, PRESETS)
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
