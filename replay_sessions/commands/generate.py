"""Generates sessions of the embedded demo shop.

  shop-r1 generate --sessions 300 --seed 0 --out stores/demo
  shop-r1 generate --sessions 9 --page-size realistic --out b

The policy of its shoppers is known, and with it the best possible prediction.
"""

from replay_sessions.commands.contents import print_contents
from replay_sessions.commands.import_logs import NewStore
from replay_sessions.demo_shop.shop import PageSize
from replay_sessions.demo_shop.visits import write_demo_store
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.errors import check_at_least
from replay_sessions.store import SessionStore


class Generate(NewStore):
    """The options of `generate`.

    Attributes:
        sessions: Number of sessions; each shopper has four.
        seed: Random seed; the same seed generates the same sessions.
        page_size: small: a shop that a tiny model can learn, 10 elements a page; compact: a shop with fixed prices,
            search and shoppers who compare, 60 elements; realistic: the same on pages of about 100 kB.
    """

    sessions: int
    seed: int = 0
    page_size: PageSize = "small"

    def __post_init__(self) -> None:
        check_at_least(1, sessions=self.sessions)


def _generate(options: Generate) -> int:
    write_demo_store(
        options.out,
        options.sessions,
        options.seed,
        options.page_size,
        splits=options.splits,
        overwrite=options.overwrite,
    )
    print_contents(SessionStore.open(options.out))
    return 0


run = command(Generate, _generate, program="shop-r1 generate")
