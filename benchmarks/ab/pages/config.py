"""The options of `shop-r1 ab pages`."""

from pathlib import Path
from typing import Literal

from replay_sessions.foundation.errors import check_at_least
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Split
from shop_env.observation import ContextConfig
from shop_env.replies import Extraction


class PagesConfig(Config):
    """Predicts with agents what a change of a shop's pages would do.

    Attributes:
        agents: Agents to evaluate, as in a leaderboard. Those that learn get the train split of the store.
        change: FILE.toml with rules, FILE.py:FUNCTION or MODULE:FUNCTION, from the text of a page to that of B.
        out: The folder for pages.json, pages.md, change.diff and answers.
        store: `demo` or the path of a session store.
        split: The split to evaluate on; agents have learnt from train.
        placebo: A change that should have no effect, such as another wording. If None, blank lines are added.
        clicks: Clicks that are counted by themselves, as LABEL=PATTERN|PATTERN. In a pattern, * stands for anything;
            a pattern without a dot matches the last part of an element's name. The first label that matches counts.
        draws: Number of replies to each page. If 0, the agent's probabilities, or 5 replies if it gives none.
        sessions: Number of sessions of the split, drawn by the seed. If None, all.
        context: What the agents see of a session.
        extraction: How an action is parsed from a reply, `strict` or `lenient`, as in a leaderboard.
        seed: The seed of the agents, the same on A and on B.
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
