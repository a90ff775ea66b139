"""Collects what visitors of a shop do, as rrweb records it, after they have agreed.

  shop-r1 record --out recordings
  shop-r1 import rrweb recordings --terminate-at-end \\
    --out stores/mine

It prints the line of HTML that the shop's pages need. Each session is a file
in OUT that only grows. Acknowledged data is on the disk, so you can stop it at
any time; the same command continues, with the same token.

It listens on this machine only. For visitors elsewhere, put it behind the web
server that holds the shop's certificate; docs/own_shop.md shows how.
"""

from pathlib import Path

from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.serving import serve
from replay_sessions.recorder.journal import Journal
from replay_sessions.recorder.rrweb_bundle import recorder_script


class Collect(Record):
    """The options of `record`.

    Attributes:
        out: The folder for the recordings, with a file for each session.
        host: The address to listen on; any but this machine's own lets others post without encryption.
        port: The port to listen on; 0 takes a free port.
    """

    out: Path
    host: str = "127.0.0.1"
    port: int = 8600


def _collect(options: Collect) -> int:
    with requires_extra("recorder"):
        from replay_sessions.recorder.collector import collector_server  # noqa: PLC0415 - an extra that may be missing
    script = recorder_script()
    with Journal(options.out) as journal:
        token = journal.token()
        server = collector_server(journal, token, script=script, host=options.host, port=options.port)
        greeting = (
            "put this line into the head of the shop's pages:\n"
            f'  <script defer src="{server.address}/{token}/recorder.js"></script>\n'
            "Ctrl-C ends; what was acknowledged is on the disk, and the same command goes on."
        )
        return serve(server, greeting, journal.summary)


run = command(Collect, _collect, program="shop-r1 record")
