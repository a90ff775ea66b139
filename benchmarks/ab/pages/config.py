"""What is asked: whom, about which change, on which logged steps."""

from pathlib import Path
from typing import Literal

from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Split
from shop_env.observation import ContextConfig
from shop_env.replies import Extraction


class PagesConfig(Config):
    """Asks agents what a change of a shop's pages would do.

    Attributes:
        agents: Who answers, as in a leaderboard; what learns from a store is given the train split of this one.
        change: FILE.toml with rules, FILE.py:FUNCTION or MODULE:FUNCTION, from the text of a page to that of B.
        out: The folder for pages.json, pages.md, change.diff, plots and kept answers.
        store: `demo` or the path of a session store.
        split: Which of its splits to ask about; agents have learnt from train.
        placebo: Another change, one that should do nothing (another wording, say); None: blank lines alone.
        clicks: Clicks that are counted by themselves, as LABEL=PATTERN|PATTERN: * stands for anything, and a pattern
            without a dot is about the last part of an element's name. A click counts for the first label that fits.
            None: purchase and cart, by the names that shops mostly use.
        draws: Replies to each page of agents that do not give probabilities; as many more tell chance on A against A.
        by_replies: Draw replies also of agents that give probabilities: a language model's take many times as long.
        sessions: Only the first so many sessions of the split; None: all.
        first_action: Ask about each session's first page too.
        context: What of a session the agents are shown.
        extraction: How an action is read out of a reply, `strict` or `lenient`, as in a leaderboard.
        seed: Seeds the agents, on A and on B alike.
        trained_seeds: Of the trainings that {seed} in --agents stands for; their shifts are pooled too.
        batch_size: Steps in one call of an agent that answers batches.
        dry_run: Say what the change touches, write change.diff, and ask nobody.
    """

    agents: tuple[str, ...]
    change: str
    out: Path
    store: str = "demo"
    split: Split | Literal["all"] = "test"
    placebo: str | None = None
    clicks: tuple[str, ...] | None = None
    draws: int = 5
    by_replies: bool = False
    sessions: int | None = None
    first_action: bool = False
    context: ContextConfig = ContextConfig()
    extraction: Extraction = "strict"
    seed: int = 0
    trained_seeds: tuple[int, ...] = ()
    batch_size: int = 64
    dry_run: bool = False

    def __post_init__(self) -> None:
        check_at_least(1, draws=self.draws, sessions=self.sessions, batch_size=self.batch_size)
        if any("{seed}" in text for text in self.agents) != bool(self.trained_seeds):
            raise BadConfig(
                f"--agents {' '.join(self.agents)} and --trained-seeds {self.trained_seeds}: {{seed}} in an agent and "
                "what it stands for go together, for example --agents SFT=runs/mine-{seed}/sft --trained-seeds 0 1 2"
            )
