"""The logged steps that a change touches, and what an agent sees there: the page of A, of B, or of the placebo.

    PagesConfig, store, change ─► TouchedSteps ─► the steps on each version of their pages

Only the page that is answered is another: the pages before it, and what was done on them, are the shopper's own. So a
step whose page does not change is the same question twice, and agents answer the others only.
"""

import difflib
import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import msgspec
import numpy as np

from benchmarks.ab.pages.change import PageChange, count_prices, load_change, spaced, written_out
from benchmarks.ab.pages.config import PagesConfig
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.progress import track
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore
from shop_env.evaluation.scored_steps import EvaluationConfig, ScoredStep, StepKey, sessions_at
from shop_env.metrics.clustered_errors import Codes
from shop_env.observation import ObservedSession, persona_texts

PageVersion = Literal["A", "B", "placebo"]
VERSIONS: tuple[PageVersion, ...] = ("A", "B", "placebo")
SHOWN_IN_DIFF = 5


class TouchedSteps:
    """The steps that a change touches.

    Attributes:
        keys: Which they are, in the order of the store.
        users: For each the number of its user, (steps,).
        prices, repriced: How many prices B shows on them, and how many of those are not on the same page of A.
        step_count: How many steps there are with the others.
        digests: Of the pages of A, B and the placebo: answers to other pages are other answers.

    Raises:
        BadConfig: There is none, or the placebo changes none of them; or a change cannot be loaded.
    """

    def __init__(self, config: PagesConfig, store: SessionStore) -> None:
        self._config, self._store = config, store
        self._personas = persona_texts(store, config.context)
        self._pages: Mapping[PageVersion, PageChange] = {
            "A": lambda page: page,
            "B": load_change(config.change),
            "placebo": load_change(config.placebo) if config.placebo else spaced,
        }
        every = EvaluationConfig(split=config.split, sessions=config.sessions, seed=config.seed).keys(store)
        self.step_count = len(every)
        touched, self.prices, self.repriced = dict[StepKey, str](), 0, 0
        pairs = zip(self.steps("A", every), self.steps("B", every), strict=True)
        for before, after in track(pairs, "pages of B", len(every)):
            page_a, page_b = before.observation["page"], after.observation["page"]
            if page_a != page_b:
                touched[before.key] = before.session.user_id
                prices = count_prices(page_b)
                self.prices += prices.total()
                self.repriced += (prices - count_prices(page_a)).total()
        self.keys = list(touched)
        if not touched:
            raise BadConfig(
                f"the change '{config.change}' touches none of the {self.step_count:,} pages of '{config.split}': "
                "`shop-r1 show` prints a page with its names"
            )
        self.users: Codes = np.unique(list(touched.values()), return_inverse=True)[1]
        self.digests = {version: self._digest(version) for version in VERSIONS}
        if self.digests["placebo"] == self.digests["A"]:
            raise BadConfig(f"the placebo '{config.placebo}' changes none of the pages that the change does")

    @property
    def user_count(self) -> int:
        return int(self.users.max()) + 1

    def steps(self, version: PageVersion, keys: Collection[StepKey] | None = None) -> Iterator[ScoredStep]:
        """These steps, or all, as an agent sees them."""
        for session, indices in sessions_at(self._store, self._config.split, self.keys if keys is None else keys):
            for index in indices:
                yield self._step(session, index, version)

    def _step(self, session: Session, index: int, version: PageVersion) -> ScoredStep:
        steps = list(session.steps[: index + 1])
        try:
            page = self._pages[version](written_out(steps[-1].page))
        except BadConfig as error:
            raise BadConfig(f"{error} (step {index} of session {session.session_id!r})") from error
        steps[-1] = msgspec.structs.replace(steps[-1], page=page)
        changed = msgspec.structs.replace(session, steps=tuple(steps))
        return ScoredStep(session, index, ObservedSession(changed, self._config.context, self._personas).at(index))

    def _digest(self, version: PageVersion) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for step in track(self.steps(version), f"pages of {version}", len(self.keys)):
            digest.update(f"{step.key}\0{step.observation['page']}\0".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def difference_of(touched: TouchedSteps) -> str:
    """The first few touched pages, as a unified diff of their tags and texts."""
    lines: list[str] = []
    keys = touched.keys[:SHOWN_IN_DIFF]
    for before, after in zip(touched.steps("A", keys), touched.steps("B", keys), strict=True):
        label = f"session {before.session.session_id}, step {before.step_index}"
        a, b = (_in_lines(step.observation["page"]) for step in (before, after))
        lines += difflib.unified_diff(a, b, f"A: {label}", f"B: {label}", lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _in_lines(page: str) -> list[str]:
    """A page with a line for each tag that begins."""
    return [line for line in re.sub(r"(?<=\S)(?=<[^/])", "\n", page).splitlines() if line.strip()]
