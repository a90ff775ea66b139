"""The sessions of a study, what they looked at, and agents to compare with."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from agents.adapted import DistributionAgent, Floats, TrainView
from replay_sessions.elements import find_elements
from replay_sessions.schema import Action, Session, reply_action
from replay_sessions.store import SessionStore, StoreWriter
from shop_env.candidates import candidate_actions
from shop_env.observation import Observation
from shop_env.replies import action_json

VIEW = ".view_product"
MOST_ACTIONS = 400
REFERENCES = tuple(
    f"{label}={__name__}:Popularity?smoothing={smoothing}"
    for label, smoothing in (("popularity", 1), ("uniform", 1e12))
)


def sample_store(store: SessionStore, out: Path, sessions: int, tested: int) -> SessionStore:
    """A store of at most so many sessions of train and `tested` of test, drawn at random; an existing one is opened."""
    path = out / f"sample-{store.fingerprint[:8]}-{sessions}-{tested}"
    if not path.exists():
        with StoreWriter(path, source=store.manifest.source, splits=store.manifest.split_plan) as writer:
            for ids, size in ((store.session_ids("train"), sessions), (store.session_ids("test"), tested)):
                for session_id in np.random.default_rng(0).permutation(ids)[:size].tolist():
                    writer.write(store.session(session_id))
    return SessionStore.open(path)


def viewed(session: Session) -> list[str]:
    """For each step the product whose page was opened; "" where none was."""
    return [product_of(getattr(step.action, "name", "")) for step in session.steps]


def product_of(name: str) -> str:
    """The product that an element opens; "" for other elements.

    >>> product_of("results.b31.view_product"), product_of("menu.sale")
    ('b31', '')
    """
    return name.removesuffix(VIEW).rpartition(".")[2] if name.endswith(VIEW) else ""


@lru_cache(4096)
def page_kind(page: str) -> frozenset[str]:
    """Which elements a page is made of: the first parts of their names."""
    return frozenset(element.name.partition(".")[0] for element in find_elements(page))


class Popularity(DistributionAgent):
    """Draws an action of the page by how often it was done on pages of this kind in the train split.

    Args:
        smoothing: Is added to every count: a large one makes all actions alike.
    """

    def __init__(self, store: TrainView | str, smoothing: float = 1) -> None:
        super().__init__(temperature=1)
        self._smoothing = smoothing
        sessions = TrainView.of(store).sessions()
        self._counts = Counter(_done(step.page, step.action) for session in sessions for step in session.steps)

    def distributions(self, observations: Sequence[Observation]) -> list[tuple[Sequence[Action], Floats]]:
        """See DistributionAgent."""
        pages = [(seen["page"], candidate_actions(seen, MOST_ACTIONS)) for seen in observations]
        counts = [np.array([self._counts[_done(page, action)] for action in actions]) for page, actions in pages]
        weights = [own + self._smoothing for own in counts]
        return [(actions, own / own.sum()) for (_, actions), own in zip(pages, weights, strict=True)]


def _done(page: str, action: Action) -> tuple[frozenset[str], str]:
    return page_kind(page), action_json(reply_action(action))
