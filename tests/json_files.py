"""JSON files that tests read, and change as somebody else could."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def read_json(file: Path) -> Any:
    return json.loads(file.read_bytes())


def read_json_lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def set_at(content: Any, path: str, value: Any = None) -> None:
    """Sets the value at a path of keys and numbers with dots between them; removes it if the value is None."""
    *parts, last = (int(part) if part.isdigit() else part for part in path.split("."))
    for part in parts:
        content = content[part]
    if value is None:
        del content[last]
    else:
        content[last] = value


@contextmanager
def edited_json(file: Path) -> Iterator[Any]:
    """Yields the content of a file, and writes it back as the caller changed it."""
    content = read_json(file)
    yield content
    file.write_text(json.dumps(content))
