"""Selects the scored steps of a split, and configures the agent's observations and the scoring of its replies.

    SessionStore ─► EvaluationConfig.keys (from the index alone) ─► steps_at ─► ScoredStep ─► waves.py

By default the first action of a session is not scored: every session begins on the home page, so the papers count one
page-action pair as known (Shop-R1, section 4.1; OPeRA). Inferred actions are not scored either (shop_env.episodes).
"""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Action, Session, Split, Terminate
from replay_sessions.store import SessionStore
from shop_env.episodes import scored_indices
from shop_env.metrics import metric_preset
from shop_env.metrics.all_metrics import all_metrics
from shop_env.metrics.intervals import Cluster
from shop_env.observation import ContextConfig, Observation, ObservedSession, persona_texts
from shop_env.replies import Extraction
from shop_env.reward.score import RewardConfig, best_breakdown, reward_preset

AnySplit = Split | Literal["all"]
StepKey = tuple[str, int]  # session id and step index


class ScoredStep(NamedTuple):
    """One step at which an agent is evaluated."""

    session: Session
    step_index: int
    observation: Observation

    @property
    def key(self) -> StepKey:
        return self.session.session_id, self.step_index

    @property
    def logged(self) -> Action:
        return self.session.steps[self.step_index].action


def draw_sessions(session_ids: Sequence[str], count: int | None, seed: int) -> list[str]:
    """Draws `count` sessions at random, and keeps their order; None means all.

    With the same seed, a smaller count draws a subset.
    """
    if count is None:
        return list(session_ids)

    def draw(session_id: str) -> bytes:
        return hashlib.sha256(f"{seed} {session_id}".encode("utf-8", "surrogatepass")).digest()

    drawn = set(sorted(session_ids, key=draw)[:count])
    return [session_id for session_id in session_ids if session_id in drawn]


def sessions_at(store: SessionStore, split: AnySplit, keys: Collection[StepKey]) -> Iterator[tuple[Session, list[int]]]:
    """Yields the sessions of these steps of a split, each with the indices of its steps."""
    indices: dict[str, list[int]] = {}
    for session_id, index in keys:
        indices.setdefault(session_id, []).append(index)
    for session in store.sessions(split) if indices else ():
        if session_indices := indices.pop(session.session_id, None):
            yield session, session_indices
            if not indices:
                return


def steps_at(
    store: SessionStore, split: AnySplit, keys: Collection[StepKey], context: ContextConfig | None
) -> Iterator[ScoredStep]:
    """Yields these steps of a split with the agent's observations; None means the default context."""
    context = context or ContextConfig()
    personas = persona_texts(store, context)
    for session, indices in sessions_at(store, split, keys):
        observed = ObservedSession(session, context, personas)
        for index in indices:
            yield ScoredStep(session, index, observed.at(index))


class EvaluationConfig(Config):
    """The steps on which agents are evaluated, and the scoring of their replies.

    Attributes:
        store: `demo` or the path of a session store.
        split: The split to evaluate on.
        seed: The seed of the agents and of the draw of sessions.
        sessions: Number of sessions of the split to draw at random; None means all.
        context: How much of a session the agents are shown.
        reward: The reward preset for the column `reward`, or your FILE.py:FUNCTION.
        metrics: The metrics preset, which follows the choices of a paper; after commas, choices to change, such as
            text=similar, and your FILE.py:FUNCTION.
        extraction: How an action is read from a reply: `strict` accepts only the JSON object, `lenient` finds it in
            fences, behind <think>, or between other text.
        first_action: Score each session's first action too.
        inferred: Score inferred actions too, which the import added to the log.
        cluster: The clusters of intervals and tests: users with all their sessions, or sessions.
        batch_size: Steps in one call of the project's own language models; no row depends on it.
        likelihood: Also get the probabilities of each page's actions from agents that can give them: columns NLL
            (nats), top-1, top-3, ECE and Brier. Language models take many times as long.
    """

    store: str = "demo"
    split: AnySplit = "test"
    seed: int = 0
    sessions: int | None = None
    context: ContextConfig = ContextConfig()
    reward: str | RewardConfig = "shop_r1"
    metrics: str = "shop_r1"
    extraction: Extraction = "strict"
    first_action: bool = False
    inferred: bool = False
    cluster: Cluster = "user"
    batch_size: int = 64
    likelihood: bool = False

    def __post_init__(self) -> None:
        check_at_least(1, sessions=self.sessions, batch_size=self.batch_size)
        metric_preset(self.metrics)
        reward_preset(self.reward)

    @property
    def reward_config(self) -> RewardConfig:
        """The reward as a RewardConfig."""
        return reward_preset(self.reward)

    @property
    def named_functions(self) -> list[str]:
        """The user's reward and metrics, each as FILE.py:FUNCTION."""
        kind = self.reward_config.kind
        return [*([kind] if ":" in kind else []), *metric_preset(self.metrics).own]

    def check_functions(self) -> None:
        """Loads the user's reward and metrics, so that a mistake is reported before hours of work, not after."""
        best_breakdown(Terminate(), self.reward_config)
        all_metrics(metric_preset(self.metrics))

    def keys(self, store: SessionStore, session_ids: Collection[str] | None = None) -> list[StepKey]:
        """Returns the steps to evaluate on, in the order of the store.

        Args:
            session_ids: Returns only steps of these sessions; None means all that are drawn.

        Raises:
            BadConfig: The sessions have no step to score.
        """
        chosen = draw_sessions(store.session_ids(self.split), self.sessions, self.seed)
        if session_ids is not None:
            allowed = set(session_ids)
            chosen = [session_id for session_id in chosen if session_id in allowed]
        if not chosen:
            raise BadConfig(f"Split '{self.split}' of store '{store.path}' holds no session to evaluate")
        keys = [
            (session_id, index)
            for session_id in chosen
            for index in scored_indices(store, session_id, first_action=self.first_action, inferred=self.inferred)
        ]
        if not keys:
            raise BadConfig(
                f"Split '{self.split}' of store '{store.path}' has no step to score: its sessions have first and "
                "inferred steps alone, which are scored only when asked for (--first-action, --inferred)"
            )
        return keys
