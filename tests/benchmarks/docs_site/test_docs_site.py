"""The site's generated pages: complete, and what the code says."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.presets import load_preset
from benchmarks.console import PROGRAMS
from benchmarks.docs_site.commands import command_names, help_text
from benchmarks.docs_site.hook import on_page_markdown
from replay_sessions.exporters import EXPORTERS
from replay_sessions.importers import IMPORTERS
from shop_env.reward import RewardConfig
from train.config import LoraConfig

DOCS = Path(__file__).parents[3] / "docs"


@cache
def built(page: str) -> str:
    """A page as the site has it."""
    return on_page_markdown((DOCS / page).read_text(encoding="utf-8"))


@pytest.mark.long
def test_the_page_has_the_help_of_every_command():
    page, names = built("command_line.md"), list(command_names())
    lists = {"import": IMPORTERS, "export": EXPORTERS, "agents": ("list", "check"), "serve": ("openenv", "tasks")}
    assert names.count("") == 1
    assert set(names) >= {*PROGRAMS, *(f"{name} {further}" for name, all_ in lists.items() for further in all_)}
    for name in names:
        help_ = help_text(name)
        assert f"{f'shop-r1 {name}'.strip()}\n\n```text\n{help_}```\n" in page
        assert f"usage: {f'shop-r1 {name}'.strip()} " in help_
        assert len(help_.splitlines()) <= 40


def row_of(table: str, key: str) -> list[str]:
    """The cells of a key's row in its table's section."""
    section = (
        built("hyperparameters.md").split(f"\n### {f'`{table}`' if table else 'The whole run'}\n")[1].split("\n#")[0]
    )
    (row,) = [line for line in section.splitlines() if line.startswith(f"| `{key}` |")]
    return [cell.strip(" `") for cell in row.strip("|").split(" | ")]


def keys_of(table: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Every key of a configuration as run.json has it, with the table that it stands in."""
    for key, value in table.items():
        inner = f"{path}.{key}".lstrip(".")
        if key == "phases":
            (value,) = list(value.values())[:1]
            inner = "phases.NAME"
        if key == "stages":
            value = value[0]
        if isinstance(value, dict) and key != "click_type_points":
            if not (path.startswith("phases") and key in ("sft", "grpo", "validation")):
                yield from keys_of(value, inner)
        else:
            yield path, key


def test_every_key_of_a_run_has_a_meaning_on_the_page():
    preset = load_preset("tiny_cpu")
    model = msgspec.structs.replace(preset.model, path="some/model", lora=LoraConfig())
    whole: TrainConfig = msgspec.structs.replace(preset, model=model, reward=RewardConfig())
    keys = list(keys_of(msgspec.to_builtins(whole)))
    assert len(keys) > 100
    for table, key in keys:
        assert len(row_of(table, key)[1]) > 5, (table, key)
