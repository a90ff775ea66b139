"""Generates the page "Hyper-parameters and metrics" from the classes of the configuration and of the metrics file."""

import json
import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any, get_args

import msgspec

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.presets import HYPERPARAMETERS
from replay_sessions.foundation.help_text import field_meanings
from train import metrics_file


def training_keys() -> str:
    """Returns a table of keys for each table of a training run's configuration."""
    return "\n".join(_config_section(path, kind) for path, kind in config_tables())


def config_tables(kind: Any = TrainConfig, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the path and the class of every table of the configuration; the path of the whole run is empty."""
    yield path, kind
    for field in msgspec.structs.fields(kind):
        if path.startswith("phases") and field.name in HYPERPARAMETERS:
            continue  # the numbers of a phase have the same keys as those of the run
        inner = f"{path}.{field.name}".lstrip(".")
        for table in _structs(field.type):
            yield from config_tables(table, f"{inner}.NAME" if field.name == "phases" else inner)


def step_metrics() -> str:
    """Returns the table in the docstring of train/metrics_file.py."""
    table = re.search(r"^\|(?:.+\n)+", metrics_file.__doc__ or "", re.MULTILINE)
    return table[0] if table else ""


def _config_section(path: str, kind: Any) -> str:
    meanings = {name: meaning.replace("|", "\\|") for name, meaning in field_meanings(kind).items()}
    rows = [
        f"| `{field.name}` | {meanings[field.name]} | {_default(field)} |\n"
        for field in msgspec.structs.fields(kind)
        if field.name in meanings
    ]
    head = " ".join(cleandoc(kind.__doc__).partition("\n\n")[0].split())
    title = f"`{path}`" if path else "The whole run"
    return f"### {title}\n\n{head}\n\n| key | meaning | default |\n| --- | --- | --- |\n{''.join(rows)}"


def _default(field: Any) -> str:
    if field.required:
        return "required"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return "`None`" if value is None else f"`{json.dumps(msgspec.to_builtins(value), ensure_ascii=False)}`"


def _structs(kind: Any) -> list[Any]:
    """Returns the Struct classes that a field of this type may hold, directly or in a list or table."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [table for argument in get_args(kind) for table in _structs(argument)]
