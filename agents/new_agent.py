"""Writes an agent to begin with, and its test, from the templates (agents/templates), under a name of one's own."""

import keyword
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from replay_sessions.foundation.errors import BadConfig, WriteFailed

AgentKind = Literal["class", "function", "policy"]
TEMPLATES = "agents.templates"
TEST = "test_class_agent.py"


def write_agent(name: str, kind: AgentKind, folder: Path) -> tuple[str, list[Path]]:
    """Writes NAME.py and test_NAME.py, both or neither, and nothing over what is there.

    Returns:
        What `--agents` takes for the new agent, and the files.

    Raises:
        BadConfig: The name is no name for a module, or a file of that name is there.
        WriteFailed: The system refused.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise BadConfig(f"'{name}' is no name for a module: letters, digits and _, lower case, as in my_agent")
    files = [folder / f"{name}.py", folder / f"test_{name}.py"]
    if there := [str(file) for file in files if file.exists()]:
        raise BadConfig(f"{' and '.join(there)} already there, and nothing is overwritten: choose another name")
    if find_spec(name) is not None:
        raise BadConfig(f"there is a module '{name}' already, which the file would hide: choose another name")
    class_name = "".join(part.capitalize() for part in name.split("_"))
    of_kinds = {"class": class_name, "function": "act", "policy": class_name}
    template = f"{kind}_agent"
    words = {template: name, template.title().replace("_", ""): class_name}
    agent = _filled(f"{template}.py", words)
    test = _filled(TEST, {"ClassAgent": of_kinds[kind], "class_agent": name})
    _write_new(dict(zip(files, (agent, test), strict=True)))
    return f"{files[0]}:{of_kinds[kind]}", files


def _filled(template: str, words: dict[str, str]) -> str:
    text = resources.files(TEMPLATES).joinpath(template).read_text(encoding="utf-8")
    for old, new in words.items():
        text = text.replace(old, new)
    return text


def _write_new(contents: dict[Path, str]) -> None:
    written: list[Path] = []
    try:
        for file, content in contents.items():
            with file.open("x", encoding="utf-8") as opened:  # "x": never over a file that came in between
                written.append(file)
                opened.write(content)
    except OSError as error:
        for file in written:
            file.unlink(missing_ok=True)
        raise WriteFailed(f"the agent cannot be written to '{file}': {error.strerror}") from error
