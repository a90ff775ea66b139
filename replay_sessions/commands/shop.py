"""Opens the demo shop as real pages in a browser, and records visitors who agree.

  shop-r1 shop --out recordings
  shop-r1 shop --page-size small --out recordings
  shop-r1 import rrweb recordings --terminate-at-end \\
    --out stores/mine

It prints the address to open. The last page of a visit links to the pages as a
model sees them. The pages are only served to this machine.
"""

from pathlib import Path

from replay_sessions.demo_shop.shop import PageSize
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.serving import serve
from replay_sessions.recorder.journal import Journal
from replay_sessions.recorder.rrweb_bundle import recorder_script


class Shop(Record):
    """The options of `shop`.

    Attributes:
        out: The folder for the recordings, with a file for each visit.
        page_size: `small`: pages of ten elements; `compact`: a shop with prices, search and a cart; `realistic`: the
            same on pages of about 100 kB.
        seed: Random seed of the shoppers; visitors get their tasks.
        port: The port to listen on, on this machine; 0 takes a free port.
    """

    out: Path
    page_size: PageSize = "compact"
    seed: int = 0
    port: int = 8601


def _shop(options: Shop) -> int:
    with requires_extra("recorder"):
        from replay_sessions.demo_shop.web.server import Visits, shop_server  # noqa: PLC0415 - may be missing
    script = recorder_script()
    with Journal(options.out) as journal:
        visits = Visits(options.seed, options.page_size)
        server = shop_server(visits, journal, journal.token(), script=script, port=options.port)
        greeting = (
            f"open {server.address}/\n"
            "Ctrl-C ends; visits that were begun end with it, and what was recorded is on the disk."
        )
        return serve(server, greeting, journal.summary)


run = command(Shop, _shop, program="shop-r1 shop")
