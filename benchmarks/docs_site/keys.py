"""The page "Hyper-parameters and metrics": keys and fields from their classes, papers' values from their presets."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from inspect import cleandoc
from typing import Any, get_args

import msgspec

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.presets import NUMBERS, PRESETS
from replay_sessions.foundation.help_text import field_meanings
from train import metrics_file

# Column -> the preset whose values it has; in a paper's, what is marked as ours is none of the paper's.
COLUMNS = {"`tiny_cpu`": "tiny_cpu", "Shop-R1": "shop_r1_3b", "Customer-R1": "customer_r1_7b"}
_LINE = re.compile(r"\[(?P<table>[\w.]+)\]|(?P<key>\w+) = (?P<value>.*?)(?P<ours> # ours.*)?(?: # .*)?")


def training_keys() -> str:
    """A table of keys for each table of a training run's configuration."""
    values = {column: preset_values(preset, is_paper="`" not in column) for column, preset in COLUMNS.items()}
    return "\n".join(_config_section(path, kind, values) for path, kind in config_tables())


def config_tables(kind: Any = TrainConfig, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every table of the configuration with its class; the first, of the whole run, has no path."""
    yield path, kind
    for field in msgspec.structs.fields(kind):
        if path.startswith("phases") and field.name in NUMBERS:
            continue  # a phase's own numbers have the keys of the run's
        inner = f"{path}.{field.name}".lstrip(".")
        for table in _structs(field.type):
            yield from config_tables(table, f"{inner}.NAME" if field.name == "phases" else inner)


def preset_values(preset: str, *, is_paper: bool) -> dict[str, str]:
    """The keys that a preset gives, as it writes their values; of a paper, without those that are marked as ours."""
    table, values = "", {}
    for line in (PRESETS / f"{preset}.toml").read_text(encoding="utf-8").splitlines():
        if match := _LINE.fullmatch(line):
            table = match["table"] or table
            if match["key"] and not (is_paper and match["ours"]):
                values[f"{table}.{match['key']}".lstrip(".")] = match["value"]
    return values


def step_metrics() -> str:
    """The table at the head of train/metrics_file.py."""
    table = re.search(r"^\|(?:.+\n)+", metrics_file.__doc__ or "", re.MULTILINE)
    return table[0] if table else ""


def _config_section(path: str, kind: Any, values: Mapping[str, Mapping[str, str]]) -> str:
    meanings = field_meanings(kind)
    rows = []
    for field in msgspec.structs.fields(kind):
        if field.name in meanings:
            of_presets = [own.get(f"{path}.{field.name}".lstrip("."), "") for own in values.values()]
            cells = [_default(field), *of_presets]
            cells = [f"`{cell}`" if cell not in ("", "required") else cell for cell in cells]
            rows.append([f"`{field.name}`", meanings[field.name].replace("|", "\\|"), *cells])
    header = ["key", "meaning", "default", *values]
    filled = [number for number in range(len(header)) if number < 2 or any(row[number] for row in rows)]
    rows = [[row[number] for number in filled] for row in rows]
    head = " ".join(cleandoc(kind.__doc__).partition("\n\n")[0].split())
    title = f"`{path}`" if path else "The whole run"
    return f"### {title}\n\n{head}\n\n{_table([header[number] for number in filled], rows)}"


def _default(field: Any) -> str:
    if field.required:
        return "required"
    return _as_json(field.default if field.default is not msgspec.NODEFAULT else field.default_factory())


def _as_json(value: Any) -> str:
    return "None" if value is None else json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def _structs(kind: Any) -> list[Any]:
    """The records that a field may hold: itself, or in a list or table."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [table for argument in get_args(kind) for table in _structs(argument)]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
