"""An importer for shop-r1: reads sessions from your own log, here JSON lines with one visit each.

shop-r1 import own_importer.py:OwnImporter visits.jsonl --out stores/mine

    {"visit": "v1", "user": "u1", "steps": [{"page": "<button name=\\"cart\\">Cart</button>", "click": "cart"}]}
"""

import json
from collections.abc import Iterator
from pathlib import Path

from replay_sessions import Click, Session, Step, Terminate
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import Importer, NoOptions
from replay_sessions.store.manifest import Rejected


class OwnImporter(Importer):
    """Reads visits; a step without a click terminates the session."""

    def read(self, source: Path, options: NoOptions) -> Iterator[Session | Rejected]:
        """Yields the session of each line, or Rejected with the reason."""
        if not source.is_file():
            raise ImportFailed(f"no file '{source}'")
        with source.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    visit = json.loads(line)
                    steps = tuple(
                        Step(page=step["page"], action=Click(name=step["click"]) if step.get("click") else Terminate())
                        for step in visit["steps"]
                    )
                    yield Session(session_id=visit["visit"], user_id=visit["user"], source="own_importer", steps=steps)
                except (ValueError, KeyError, TypeError) as error:
                    yield Rejected(where=f"line {number}", reason=f"no visit: {error!r}")
