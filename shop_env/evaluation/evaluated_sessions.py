"""Describes the sessions of an evaluation for its tables.

SessionStore, EvaluationConfig ─► describe_sample ─► Sample ─► results.json, the line above a table, notes below it
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from statistics import fmean

import msgspec

from replay_sessions.foundation.records import Config
from replay_sessions.schema import Split
from replay_sessions.scored_kinds import ScoredKinds
from replay_sessions.store import SessionStore
from replay_sessions.store.manifest import describe_late_rationales
from shop_env.evaluation.scored_steps import EvaluationConfig, sessions_at
from shop_env.observation import ContextConfig
from shop_env.reward.ties import Ties, sample_ties

LARGE_SESSION = 0.05  # the share of the steps from which on a session is large
_DAY = re.compile(r"^\d{4}-\d\d-\d\d")


class Sample(Config):
    """The sessions of an evaluation that have a scored step.

    Attributes:
        sessions: Number of these sessions.
        drawn_from: Number of sessions of the split that they were drawn from; None if all were taken.
        days: The first and the last day on which a session begins; None if the store has no dates.
        longest: The largest share of the steps in one session.
        inferred: The share of the sessions' actions that the import inferred, scored or not.
        scored: How many steps of each kind are scored; None if none is inferred, or inferred ones are scored too.
        late_rationales: A sentence if agents are shown rationales that were, or may have been, written with later
            actions in view.
        ties: A sample of the steps, with those where the reward pays another element like the logged one.
    """

    sessions: int
    drawn_from: int | None = None
    days: tuple[str, str] | None = None
    longest: float
    inferred: float = 0.0
    scored: str | None = None
    late_rationales: str | None = None
    ties: Ties | None = None

    @property
    def text(self) -> str:
        sessions = f"all {self.sessions:,} sessions with scored steps"
        if self.drawn_from is not None:
            sessions = f"{self.sessions:,} of {self.drawn_from:,} sessions drawn at random"
        return f"{sessions}, {' to '.join(self.days)}" if self.days else sessions

    @property
    def warnings(self) -> list[str]:
        warnings = [self.late_rationales] if self.late_rationales else []
        if self.scored:
            warnings.append(f"Scored by kind: {self.scored}.")
        if self.longest > LARGE_SESSION:
            warnings.append(f"One session has {self.longest:.0%} of the steps: much in this table depends on it alone.")
        if self.ties and self.ties.are_many:
            warnings.append(f"Warning: {self.ties.text}")
        return warnings


def describe_sample(store: SessionStore, config: EvaluationConfig, contexts: Iterable[ContextConfig] = ()) -> Sample:
    """Reads the sessions of an evaluation and describes them.

    Args:
        contexts: The contexts of the agents.
    """
    keys, split = config.keys(store), store.session_ids(config.split)
    splits = {row.session_id: row.split for row in store.index()}
    sources: defaultdict[Split, set[str]] = defaultdict(set)
    steps = Counter(session_id for session_id, _ in keys)
    days, inferred, scored = [], [], ScoredKinds()
    for session, _ in sessions_at(store, config.split, msgspec.structs.replace(config, inferred=True).keys(store)):
        days += _DAY.findall(session.steps[0].timestamp or "")
        sources[splits[session.session_id]] |= session.rationale_sources
        for step in session.steps[int(not config.first_action) :]:
            inferred.append(step.is_inferred)
            scored.add_step(step)
    return Sample(
        sessions=len(steps),
        drawn_from=len(split) if config.sessions is not None and config.sessions < len(split) else None,
        days=(min(days), max(days)) if days else None,
        longest=max(steps.values()) / len(keys),
        inferred=fmean(inferred),
        scored=scored.describe() if any(inferred) and not config.inferred else None,
        late_rationales=(
            describe_late_rationales(store.manifest, sources)
            if any(context.rationales for context in contexts)
            else None
        ),
        ties=sample_ties(store, keys, config.reward_config),
    )
