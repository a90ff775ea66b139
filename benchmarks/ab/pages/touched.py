"""Finds the logged steps that a change touches, and builds what an agent sees there: the page of A, B or the placebo.

    PagesConfig, store, change ─► TouchedSteps ─► the steps on each version of their pages

Only the current page differs between versions; the earlier pages and actions are the logged ones. So a step without a
change of its page has the same observation on A and B, and agents are not run on it.
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
        keys: The keys of the touched steps, in the order of the store.
        users: The number of each step's user, (steps,).
        prices: Number of prices that B shows at touched steps.
        repriced: Number of these prices that the same page of A does not show.
        step_count: Number of all steps, touched or not.
        digests: A digest of the pages of A, B and the placebo. It is part of the identity of saved answers.

    Raises:
        BadConfig: No step is touched, or the placebo changes none of the touched pages, or a change cannot be loaded.
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
        """Yields steps as an agent sees them, with a version of their pages.

        Args:
            version: The version of the current page.
            keys: The steps to yield. If None, the touched steps.
        """
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
    """Returns a unified diff of the first SHOWN_IN_DIFF touched pages, with a line for each tag."""
    lines: list[str] = []
    keys = touched.keys[:SHOWN_IN_DIFF]
    for before, after in zip(touched.steps("A", keys), touched.steps("B", keys), strict=True):
        label = f"session {before.session.session_id}, step {before.step_index}"
        a, b = (_in_lines(step.observation["page"]) for step in (before, after))
        lines += difflib.unified_diff(a, b, f"A: {label}", f"B: {label}", lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _in_lines(page: str) -> list[str]:
    """Splits a page into lines, one for each opening tag."""
    return [line for line in re.sub(r"(?<=\S)(?=<[^/])", "\n", page).splitlines() if line.strip()]
