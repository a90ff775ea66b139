"""What an agent is made of: an edit of a module that it imports makes it another agent, an edit beside it does not."""

import sys
from pathlib import Path

import pytest

from agents.agent_code import code_digest
from agents.registry import parse_spec

AGENT = """
class Bot:
    def reset(self, *, seed=None): ...
    def act(self, observation):
        {late}
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
    for name in [name for name in sys.modules if name.partition(".")[0] in ("bots", "bot_words", "bot_numbers")]:
        del sys.modules[name]


def test_a_file_s_helpers_count_also_those_of_helpers_and_in_functions(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "bot.py": "from bot_words import WORD\nfrom shop_env.replies import format_reply\nimport bot_numbers\n"
            + AGENT.format(late="from bot_lists import LIST"),
            "bot_words.py": "WORD = 'kettle'\n",
            "bot_numbers/__init__.py": "from .primes import PRIMES\n",
            "bot_numbers/primes.py": "import bot_words\nPRIMES = [2, 3]\n",
            "bot_numbers/unused.py": "",
            "bot_lists.py": "LIST = []\n",
            "notes.py": "",
            "shop_env/replies.py": "",  # as in a checkout of shop-r1, which `scoring` tells
        },
    )
    agent = f"{tmp_path / 'bot.py'}:Bot"
    helpers = {"bot_words.py", "bot_numbers/__init__.py", "bot_numbers/primes.py", "bot_lists.py"}
    assert decisive(tmp_path, agent) == {"bot.py", *helpers}


@pytest.mark.parametrize("home", [".", "lib/site-packages"])
def test_in_a_package_the_modules_of_the_package_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    write(
        tmp_path / home,
        {
            "bots/__init__.py": "",
            "bots/kinds/__init__.py": "",
            "bots/kinds/bot.py": "from .. import words\nfrom bots.kinds.base import Base\nimport bot_words\n"
            + AGENT.format(late="import numpy").replace("Bot:", "Bot(Base):"),
            "bots/kinds/base.py": "class Base: ...\n",
            "bots/kinds/other.py": "",
            "bots/words.py": "from .kinds import base\n",
            "bot_words.py": "",
        },
    )
    monkeypatch.syspath_prepend(tmp_path / home)
    own = {"bots/__init__.py", "bots/kinds/__init__.py", "bots/kinds/bot.py", "bots/kinds/base.py", "bots/words.py"}
    assert decisive(tmp_path / home, "bots.kinds.bot:Bot") == own


def test_of_an_installed_module_in_no_package_only_its_own_file_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site-packages"
    write(installed, {"bot_words.py": "import bot_numbers\n" + AGENT.format(late=""), "bot_numbers.py": ""})
    monkeypatch.syspath_prepend(installed)
    assert decisive(installed, "bot_words:Bot") == {"bot_words.py"}


def test_where_a_helper_does_not_parse_the_agent_is_digested_all_the_same(tmp_path: Path) -> None:
    write(tmp_path, {"bot.py": AGENT.format(late="import bot_lists"), "bot_lists.py": "= = ="})
    assert decisive(tmp_path, f"{tmp_path / 'bot.py'}:Bot") == {"bot.py", "bot_lists.py"}
