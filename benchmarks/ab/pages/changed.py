"""The logged steps that a change touches, and what an agent sees there: the page of A, of B, or of the placebo.

    PagesConfig (the command's options), store, Change ─► ChangedSteps ─► the steps on each version of their pages

Only the page that is answered is another: the pages before it, and what was done on them, are the shopper's own. So a
step whose page does not change is the same question twice, and agents answer the others only.
"""

import difflib
import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from benchmarks.ab.pages.change import Change, spaced
from replay_sessions.elements import page_names
from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.progress import track
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Session, Split
from replay_sessions.store import SessionStore
from shop_env.evaluation.scored_steps import ScoredStep, StepKey, scored_keys, sessions_at
from shop_env.metrics.clustered_errors import Codes
from shop_env.observation import ContextConfig, ObservedSession, persona_texts
from shop_env.replies import Extraction


class PagesConfig(Config):
    """Asks agents what a change of a shop's pages would do.

    Attributes:
        agents: Who answers, as in a leaderboard; what learns from a store is given the train split of this one.
        change: FILE.toml with rules, FILE.py:FUNCTION or MODULE:FUNCTION, from the text of a page to that of B.
        out: The folder for pages.json, pages.md, change.diff, plots and answers.
        store: `demo` or the path of a session store.
        split: Which of its splits to ask about; agents have learnt from train.
        placebo: Another change, one that should do nothing (another wording, say); None: blank lines alone.
        clicks: Clicks that are counted by themselves, as LABEL=PATTERN|PATTERN: * stands for anything, and a pattern
            without a dot is about the last part of an element's name. A click counts for the first label that fits.
            None: purchase and cart, by the names that shops mostly use.
        draws: Replies to each page of agents without probabilities; as many more measure chance on A against A.
        by_replies: Draw replies also of agents that give probabilities: a language model's take many times as long.
        sessions: Only the first so many sessions of the split; None: all.
        first_action: Ask about each session's first page too.
        context: What of a session the agents are shown.
        extraction: How an action is read out of a reply, `strict` or `lenient`, as in a leaderboard.
        seed: Seeds the agents, on A and on B alike.
        trained_seeds: Of the trainings that {seed} in --agents stands for; their shifts are pooled too.
        batch_size: Steps in one call of an agent that answers batches.
        dry_run: Print what the change touches and write change.diff, without running an agent.
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


PageVersion = Literal["A", "B", "placebo"]
SHOWN_IN_DIFF = 5
NAMES_TOLD = 12


class ChangedSteps:
    """The steps that a change touches.

    Attributes:
        keys: Which they are, in the order of the store.
        users: For each the number of its user, (steps,).
        user_count: How many users these are.
        learnt_from: How many of these users are in the train split.
        step_count: How many steps there are with the others.
        names: Of all elements on these pages.
        digests: Of the pages of A, B and the placebo: answers to other pages are other answers.

    Raises:
        BadConfig: There is none, or the placebo changes none of them.
    """

    def __init__(self, config: PagesConfig, store: SessionStore, change: Change, placebo: Change | None) -> None:
        self._config, self._store = config, store
        self._personas = persona_texts(store, config.context)
        self._pages: Mapping[PageVersion, Callable[[str], str]] = {
            "A": lambda page: page,
            "B": change,
            "placebo": placebo or spaced,
        }
        every = scored_keys(store, config.split, skip_first_action=False, max_sessions=config.sessions)
        wanted = [key for key in every if key[1] or config.first_action]
        self.step_count = len(wanted)
        touched = self._find_touched(every)
        self.keys = [key for key in wanted if key in touched]
        if not self.keys:
            raise BadConfig(self._nothing_touched(change, first_pages=len(touched)))
        user_ids = [touched[key] for key in self.keys]
        self.users: Codes = np.unique(user_ids, return_inverse=True)[1]
        self.user_count = len(set(user_ids))
        learnt = store.sessions("train") if config.split in ("all", "train") else ()
        learners = {session.user_id for session in learnt}
        self.learnt_from = len(learners.intersection(user_ids))
        self.names: set[str] = set()
        self.digests = {version: self._digest(version) for version in self._pages}
        if self.digests["placebo"] == self.digests["A"]:
            raise BadConfig(f"the placebo '{config.placebo}' changes none of the pages that the change does")

    def steps(self, version: PageVersion, keys: Collection[StepKey] | None = None) -> Iterator[ScoredStep]:
        """These steps, or all, as an agent sees them."""
        for session, indices in sessions_at(self._store, self._config.split, self.keys if keys is None else keys):
            for index in indices:
                yield self._step(session, index, version)

    def _step(self, session: Session, index: int, version: PageVersion) -> ScoredStep:
        steps = list(session.steps[: index + 1])
        try:
            page = self._pages[version](steps[-1].page)
        except BadConfig as error:
            raise BadConfig(f"{error} (step {index} of session {session.session_id!r})") from error
        steps[-1] = msgspec.structs.replace(steps[-1], page=page)
        changed = msgspec.structs.replace(session, steps=tuple(steps))
        observation = ObservedSession(changed, self._config.context, self._personas).at(index)
        return ScoredStep(session, index, observation)

    def _find_touched(self, keys: Sequence[StepKey]) -> dict[StepKey, str]:
        """The steps at which an agent sees another page on B than on A, with their users."""
        touched = {}
        steps = zip(self.steps("A", keys), self.steps("B", keys), strict=True)
        for before, after in track(steps, "pages of B", len(keys)):
            if before.observation["page"] != after.observation["page"]:
                touched[before.key] = before.session.user_id
        return touched

    def _digest(self, version: PageVersion) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for step in track(self.steps(version), f"names on {version}", len(self.keys)):
            page = step.observation["page"]
            digest.update(f"{step.key}\0{page}\0".encode("utf-8", "surrogatepass"))
            self.names |= page_names(page)
        return digest.hexdigest()

    def _nothing_touched(self, change: Change, first_pages: int) -> str:
        config = self._config
        message = (
            f"the change '{change.source}' touches none of the {self.step_count:,} pages of split '{config.split}'"
        )
        if first_pages:
            return f"{message} but {first_pages} first pages of sessions: --first-action asks about those too"
        names: dict[str, None] = {}
        for session in self._store.sessions(config.split):
            for step in session.steps:
                names |= dict.fromkeys(re.findall(r'\bname="([^"]+)"', step.page))
            if len(names) > NAMES_TOLD:
                break
        return f"{message}. Names that stand on them: {', '.join(list(names)[:NAMES_TOLD])}, …"


def difference_of(changed: ChangedSteps) -> str:
    """The first few touched pages, as a unified diff of their tags and texts."""
    lines: list[str] = []
    keys = changed.keys[:SHOWN_IN_DIFF]
    for before, after in zip(changed.steps("A", keys), changed.steps("B", keys), strict=True):
        label = f"session {before.session.session_id}, step {before.step_index}"
        a, b = (_in_lines(step.observation["page"]) for step in (before, after))
        lines += difflib.unified_diff(a, b, f"A: {label}", f"B: {label}", lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _in_lines(page: str) -> list[str]:
    """A page with a line for each tag that begins."""
    return [line for line in re.sub(r"(?<=\S)(?=<[^/])", "\n", page).splitlines() if line.strip()]
