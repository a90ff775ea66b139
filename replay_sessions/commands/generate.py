"""Makes sessions of the embedded demo shop.

  python -m replay_sessions generate --sessions 300 --seed 0 --out stores/demo
  python -m replay_sessions generate --sessions 9 --page-size realistic --out b

The policy of its shoppers is known, so it is known how well they can be predicted.
"""

from collections.abc import Sequence

from replay_sessions.commands.command_line import parse_options
from replay_sessions.commands.new_store import NewStore, tell_contents
from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.demo_shop.pages import PageSize
from replay_sessions.errors import BadConfig
from replay_sessions.progress_bar import progress_bar
from replay_sessions.store import SessionStore, StoreWriter

__all__ = ["Generate", "run"]


class Generate(NewStore, frozen=True, kw_only=True):
    """Makes sessions of the demo shop.

    Attributes:
        sessions: How many sessions; four to a shopper.
        seed: The same seed makes the same sessions.
        page_size: small: the shop that a tiny model can learn, 10 elements a page; compact: one with fixed prices,
            search and shoppers who compare, 60 elements; realistic: the same on pages of about 100 kB.
    """

    sessions: int
    seed: int = 0
    page_size: PageSize = "small"

    def __post_init__(self) -> None:
        if self.sessions < 1:
            raise BadConfig(f"--sessions is {self.sessions}, and at least 1 was expected")


def run(words: Sequence[str]) -> int:
    """Runs `generate` with what was given after it."""
    options = parse_options(Generate, words, program="python -m replay_sessions generate", text=__doc__)
    described = {"sessions": str(options.sessions), "seed": str(options.seed), "page_size": options.page_size}
    with (
        StoreWriter(
            options.out, source=SOURCE, splits=options.splits, overwrite=options.overwrite, options=described
        ) as writer,
        progress_bar("generating", options.sessions) as advance,
    ):
        for session in generate_sessions(options.sessions, options.seed, options.page_size):
            writer.write(session)
            advance(1)
    tell_contents(SessionStore.open(options.out))
    return 0
