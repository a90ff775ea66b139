"""Finds the code that a preset, a file of rows or a run.json names: functions, classes, agents, files of prompts.

Such a file may come from another person, so running its code needs the user's consent (--trust). Files of the package,
code that the command line names, and a run.json that a run of this user has written need no consent. The digests of
these run.json files are in the user's cache.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from agents.registry import names_nothing, parse_spec
from replay_sessions.foundation.durable_files import cache_folder
from shop_env.evaluation.results_file import digest_file

OWN_RUNS = "own_runs"  # a file with the digest of a run.json on each line


def named_code(tables: dict[str, Any]) -> list[str]:
    """Returns the names of code and files of prompts in the tables of a configuration, as they are written there."""
    return [name for name in _names(tables) if isinstance(name, str)]


def _names(tables: dict[str, Any]) -> Iterator[Any]:
    yield from filter(_is_function, _rewards(tables))
    for phase in _table(tables, "phases").values():
        if isinstance(phase, dict):
            yield from filter(_is_function, (*_rewards(phase), phase.get("method")))
    for agent in _table(tables, "evaluation").get("agents", ()):
        if isinstance(agent, str) and not names_nothing(parse_spec(agent)):
            yield agent
    yield _table(tables, "prompt").get("system_file")


def _table(tables: dict[str, Any], name: str) -> dict[str, Any]:
    table = tables.get(name)
    return table if isinstance(table, dict) else {}  # the parser of the configuration reports other types


def _rewards(tables: dict[str, Any]) -> list[Any]:
    return [tables.get("reward"), _table(tables, "reward").get("kind")]


def _is_function(name: Any) -> bool:
    return isinstance(name, str) and ":" in name


def remember_run(run_file: Path) -> None:
    """Records in the cache that a run of this user wrote `run_file`; without a cache, resuming it needs consent."""
    folder = cache_folder()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / OWN_RUNS).open("a", encoding="ascii") as file:
            file.write(f"{digest_file(run_file)}\n")


def is_own_run(run_file: Path) -> bool:
    """Returns whether a run of this user wrote `run_file` with its present content."""
    try:
        return digest_file(run_file) in (cache_folder() / OWN_RUNS).read_text("ascii").split()
    except OSError:
        return False
