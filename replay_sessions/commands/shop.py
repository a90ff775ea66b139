"""Opens the demo shop as real pages in a browser, and records who shops there and agrees.

  python -m replay_sessions shop --out recordings
  python -m replay_sessions shop --page-size small --out recordings
  python -m replay_sessions import rrweb recordings --terminate-at-end \\
    --out stores/mine

It prints the address to open. After a visit its last page leads to what a
model sees of it. The pages are served to this machine alone.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from replay_sessions.commands.command_line import parse_options
from replay_sessions.commands.serving import check_port, kept_token, recorded, serve
from replay_sessions.demo_shop.pages import PageSize
from replay_sessions.errors import BadConfig
from replay_sessions.importers.importer import Importer
from replay_sessions.plugins import load_with_extra
from replay_sessions.recorder.journal import Journal
from replay_sessions.recorder.snippet import recorder_script
from replay_sessions.web_shop.visits import Visits

__all__ = ["Shop", "run"]

_MOST_BATCH_BYTES = 16 << 20


class Shop(msgspec.Struct, frozen=True, kw_only=True):
    """Opens the demo shop.

    Attributes:
        out: The folder for the recordings, a file for each visit.
        page_size: `small`: pages of ten elements; `compact`: a shop with prices, search and a cart; `realistic`: the
            same on pages of about 100 kB.
        seed: Of the shoppers whose tasks the visitors are given.
        first: The number of the first visitor's task.
        port: Where to listen on this machine; 0: a free port.
    """

    out: Path
    page_size: PageSize = "compact"
    seed: int = 0
    first: int = 0
    port: int = 8601

    def __post_init__(self) -> None:
        check_port(self.port)
        if self.first < 0:
            raise BadConfig(f"--first is {self.first}, and 0 or more was expected")


def run(words: Sequence[str]) -> int:
    """Runs `shop` with what was given after it."""
    options = parse_options(Shop, words, program="python -m replay_sessions shop", text=__doc__)
    shop_server = load_with_extra("replay_sessions.web_shop.server:shop_server", "recorder")
    script = recorder_script()
    with Journal(options.out, most_session_bytes=Importer.longest_session_bytes) as journal:
        server = shop_server(
            Visits(options.seed, options.page_size, options.first),
            journal,
            kept_token(options.out),
            most_bytes=_MOST_BATCH_BYTES,
            script=script,
            host="127.0.0.1",
            port=options.port,
        )
        greeting = (
            f"open {server.address}/\n"
            "Ctrl-C ends; visits that were begun end with it, and what was recorded is on the disk."
        )
        return serve(server, greeting, lambda: recorded(journal))
