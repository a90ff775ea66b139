"""Presets (train/presets/*.toml): how a model is trained; rows (train/presets/rows/*.toml): which, of a paper's table.

preset   the learner: model, context, numbers of SFT and GRPO, validation, and phases to begin with
base     another preset, by name or by file beside it, that a preset starts from: it says what is different alone
rows     phases alone; what a preset says of a phase of the same name is taken over where the rows are silent
"""

import tomllib
from collections.abc import Collection
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from agents.llm_grpo.config import TrainConfig
from replay_sessions.config_errors import what_is_wrong
from replay_sessions.errors import BadConfig, did_you_mean

__all__ = ["load_preset", "preset_names", "rows_names"]

NUMBERS = ("sft", "grpo", "validation")  # of a phase: how it is trained, which is the learner's affair


def preset_names() -> list[str]:
    """The presets that come with the package."""
    return _names(_presets())


def rows_names() -> list[str]:
    """The rows of papers' tables that come with the package."""
    return _names(_presets() / "rows")


def load_preset(preset: str, rows: str | None = None, only: Collection[str] = ()) -> TrainConfig:
    """A preset by name or file, with its own phases or those of `rows`, likewise by name or file.

    Args:
        only: Of these phases only the ones named here, and those that they need; empty: all.

    Raises:
        BadConfig: No such preset, a key or a phase that does not exist, or a value that does not fit.
    """
    table = _with_base(preset, _presets())
    named = f"preset '{preset}'"
    if rows is not None:
        named += f" with rows '{rows}'"
        wanted = _read("rows", rows, _presets() / "rows")
        table = {**table, **wanted, "phases": _with_numbers(wanted.get("phases", {}), table.get("phases", {}))}
    try:
        config = msgspec.convert(table, TrainConfig)
    except msgspec.ValidationError as error:
        raise BadConfig(f"{named}: {what_is_wrong(error, TrainConfig)}") from error
    return _with_phases(config, only, named) if only else config


def _with_phases(config: TrainConfig, only: Collection[str], named: str) -> TrainConfig:
    """With these phases and those that they start from, or whose time they take, compared among themselves alone."""
    if unknown := [name for name in only if name not in config.phases]:
        raise BadConfig(f"{named} has no phase '{unknown[0]}'. {did_you_mean(unknown[0], config.phases)}")
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


def _with_numbers(rows: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The phases of `rows`, with the numbers that the preset has for phases of these names."""
    return {
        name: {key: own[name][key] for key in NUMBERS if key in own.get(name, {})} | phase
        for name, phase in rows.items()
    }


def _with_base(preset: str, folder: Any, derived: tuple[str, ...] = ()) -> dict[str, Any]:
    """A preset's table over that of its base."""
    if preset in derived:
        raise BadConfig(f"the presets {' -> '.join([*derived, preset])} are each other's base; give one of them none.")
    own = _read("preset", preset, folder)
    base = own.pop("base", None)
    if base is None:
        return own
    if not isinstance(base, str):
        raise BadConfig(f"preset '{preset}': base is {base!r}; give the name of a preset or a .toml file.")
    if base.endswith(".toml"):
        base = str(Path(preset).parent / base)
    return _merged(_with_base(base, folder, (*derived, preset)), own)


def _merged(table: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`table` with the values of `over` in their places; tables within are merged, lists replaced."""
    both = {key for key in over if isinstance(over[key], dict) and isinstance(table.get(key), dict)}
    return table | over | {key: _merged(table[key], over[key]) for key in both}


def _presets() -> Any:
    return resources.files("train") / "presets"


def _names(folder: Any) -> list[str]:
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def _read(kind: str, name: str, folder: Any) -> dict[str, Any]:
    """The table of a file that comes with the package, or of one's own."""
    file = Path(name)
    is_file = file.suffix == ".toml"
    known = _names(folder)
    if not is_file and name not in known:
        raise BadConfig(f"Unknown {kind} '{name}'. {did_you_mean(name, known)} Or give the path of a .toml file.")
    try:
        return tomllib.loads((file if is_file else folder / f"{name}.toml").read_text(encoding="utf-8"))
    except OSError as error:
        raise BadConfig(f"the {kind} file '{name}' cannot be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"the {kind} file '{name}' is no valid TOML: {error}.") from error
