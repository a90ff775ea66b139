"""Writes an author's NAME.py and its test from a template.

class_agent.py, own_reward.py, … ─► the author's names ─► NAME.py, test_NAME.py
"""

import keyword
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from replay_sessions.foundation.durable_files import writing
from replay_sessions.foundation.errors import BadConfig

AgentKind = Literal["class", "function", "policy"]
TEMPLATES = "agents.templates"
PARTS = ("agent", "reward", "metric", "importer")


def write_template(name: str, kind: str, folder: Path) -> tuple[str, list[Path]]:
    """Writes NAME.py and test_NAME.py, without overwriting files.

    Args:
        name: The name of the module.
        kind: One of AgentKind or PARTS.
        folder: The folder to write to.

    Returns:
        The name that commands take for the new agent, reward, metric or importer, and the two files.

    Raises:
        BadConfig: The name is not valid for a module or already taken, or one of the files exists.
        WriteFailed: The system refused to write.
    """
    class_name = "".join(part.capitalize() for part in name.split("_"))
    if not class_name.isidentifier() or {name, class_name} & {*keyword.kwlist} or name != name.lower():
        raise BadConfig(f"'{name}' is no name for a module: letters, digits and _, lower case, as in my_agent")
    files = [folder / f"{name}.py", folder / f"test_{name}.py"]
    if there := [str(file) for file in files if file.exists()]:
        raise BadConfig(f"{' and '.join(there)} already there, and nothing is overwritten: choose another name")
    if find_spec(name) is not None:
        raise BadConfig(f"there is a module '{name}' already, which the file would hide: choose another name")
    member = {"function": "act", "reward": "reward", "metric": "metric"}.get(kind, class_name)
    template = f"own_{kind}" if kind in PARTS else f"{kind}_agent"
    words = {template: name, template.title().replace("_", ""): class_name}
    if kind in PARTS:
        test = _filled(f"test_{template}.py", words)
    else:
        test = _filled("test_class_agent.py", {"ClassAgent": member, "class_agent": name})
    for file, text in zip(files, (_filled(f"{template}.py", words), test), strict=True):
        with writing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    return f"{files[0]}:{member}", files


def _filled(template: str, words: dict[str, str]) -> str:
    text = resources.files(TEMPLATES).joinpath(template).read_text(encoding="utf-8")
    for old, new in words.items():
        text = text.replace(old, new)
    return text
