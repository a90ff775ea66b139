"""An importer for shop-r1: sessions from a log of your own, here of JSON lines, a visit each.

shop-r1 import own_importer.py:OwnImporter visits.jsonl --out stores/mine

    {"visit": "v1", "user": "u1", "steps": [{"page": "<button name=\\"cart\\">Cart</button>", "click": "cart"}]}
"""

import json
from collections.abc import Iterator
from pathlib import Path

from replay_sessions import Click, Session, Step, Terminate
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import Imported, Importer, NoOptions, Part, gather
from replay_sessions.store.manifest import Rejected


class OwnImporter(Importer):
    """Reads visits; a step without a click ends its visit."""

    source = "own_importer"

    def __init__(self, source: Path, options: NoOptions = NoOptions()) -> None:  # noqa: B008 - it is frozen
        if not source.is_file():
            raise ImportFailed(f"no file '{source}'")
        self.files = [source]
        self.size = source.stat().st_size
        self.options, self.notes = {"file": source.name}, []

    def parts(self) -> Iterator[Part]:
        """Cuts the file into parts of about a megabyte, which several processes may read."""
        with self.files[0].open(encoding="utf-8") as lines:
            units = (Part((number, line), len(line.encode())) for number, line in enumerate(lines, 1) if line.strip())
            yield from gather(units, most_weight=1 << 20)

    def read_unit(self, unit: tuple[int, str]) -> Iterator[Imported]:
        """The session of a line, or why it is none."""
        number, line = unit
        try:
            visit = json.loads(line)
            actions = [Click(name=step["click"]) if step.get("click") else Terminate() for step in visit["steps"]]
            steps = tuple(
                Step(page=step["page"], action=action) for step, action in zip(visit["steps"], actions, strict=True)
            )
            yield Session(session_id=visit["visit"], user_id=visit["user"], source=self.source, steps=steps)
        except (ValueError, KeyError, TypeError) as error:
            yield Rejected(where=f"line {number}", reason=f"no visit: {error!r}")
