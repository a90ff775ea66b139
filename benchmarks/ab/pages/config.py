"""The options of `ab pages`."""

from pathlib import Path
from typing import Literal

from replay_sessions.foundation.errors import check_at_least
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Split
from shop_env.observation import ContextConfig
from shop_env.replies import Extraction


class PagesConfig(Config):
    """Asks agents what a change of a shop's pages would do.

    Attributes:
        agents: Which agents answer, as in a leaderboard; what learns from a store is given the train split of this one.
        change: FILE.toml with rules, FILE.py:FUNCTION or MODULE:FUNCTION, from the text of a page to that of B.
        out: The folder for pages.json, pages.md, change.diff and answers.
        store: `demo` or the path of a session store.
        split: Which of its splits to ask about; agents have learnt from train.
        placebo: Another change, one that should do nothing (another wording, say); None: blank lines alone.
        clicks: Clicks that are counted by themselves, as LABEL=PATTERN|PATTERN: * stands for anything, and a pattern
            without a dot is about the last part of an element's name. A click counts for the first label that fits.
        draws: Replies to each page; 0: the agent's probabilities, or 5 replies of one that gives none.
        sessions: Only so many sessions of the split, drawn by the seed; None: all.
        context: What of a session the agents are shown.
        extraction: How an action is read out of a reply, `strict` or `lenient`, as in a leaderboard.
        seed: Seeds the agents, on A and on B alike.
        dry_run: Print what the change touches and write change.diff, without running an agent.
    """

    agents: tuple[str, ...]
    change: str
    out: Path
    store: str = "demo"
    split: Split | Literal["all"] = "test"
    placebo: str | None = None
    clicks: tuple[str, ...] = (
        "purchase=*buy_now*|*checkout*|*place_order*|*purchase*",
        "cart=*add_to_cart*|*add_to_basket*|*add_to_bag*",
    )
    draws: int = 0
    sessions: int | None = None
    context: ContextConfig = ContextConfig()
    extraction: Extraction = "strict"
    seed: int = 0
    dry_run: bool = False

    def __post_init__(self) -> None:
        check_at_least(0, draws=self.draws)
        check_at_least(1, sessions=self.sessions)
