"""An agent's code is its folder's Python files and the files that its arguments name."""

import sys
from pathlib import Path

import pytest

from agents.agent_identity import code_digest
from agents.registry import parse_spec

AGENT = """
class Bot:
    def reset(self, *, seed=None): ...
    def act(self, observation):
        return ""
"""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def decisive(folder: Path, agent: str) -> set[str]:
    """The files in a folder whose edit changes the agent's digest."""
    before = code_digest(parse_spec(agent))
    found = set()
    for file in sorted(folder.rglob("*.py")):
        content = file.read_bytes()
        file.write_bytes(content + b"\n# edited\n")
        if code_digest(parse_spec(agent)) != before:
            found.add(file.relative_to(folder).as_posix())
        file.write_bytes(content)
        assert code_digest(parse_spec(agent)) == before
    return found


@pytest.fixture(autouse=True)
def forgets_modules() -> None:
    """What a test imports under the names below is not there for the next."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("bots", "bot_words")]:
        del sys.modules[name]


def test_the_files_beside_the_module_count_and_those_below_do_not(tmp_path):
    write(tmp_path, {"bot.py": AGENT, "bot_words.py": "", "below/notes.py": ""})
    assert decisive(tmp_path, f"{tmp_path / 'bot.py'}:Bot") == {"bot.py", "bot_words.py"}


def test_of_a_package_the_folder_of_the_module_counts(tmp_path, monkeypatch):
    files = {"bots/__init__.py": "", "bots/kinds/__init__.py": "", "bots/kinds/bot.py": AGENT, "bots/kinds/base.py": ""}
    write(tmp_path, files)
    monkeypatch.syspath_prepend(tmp_path)
    own = {"bots/kinds/__init__.py", "bots/kinds/bot.py", "bots/kinds/base.py"}
    assert decisive(tmp_path, "bots.kinds.bot:Bot") == own


def test_the_files_that_arguments_name_count(tmp_path):
    write(tmp_path, {"bot.py": AGENT, "model/weights.py": ""})
    agent = f"{tmp_path / 'bot.py'}:Bot?model={tmp_path / 'model'}"
    assert decisive(tmp_path, agent) == {"bot.py", "model/weights.py"}
