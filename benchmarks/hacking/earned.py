"""What policies earn on a store under every reward, beside what they are worth.

store ─► each policy is asked about every scored step, once ─► its replies under each reward ─► Earned

A policy is worth what it predicts: exact accuracy, type accuracy, macro-F1. Rewards are those of the text alone
(certainty.py has the rest). With a DARS factor d a reward is base + d · similarity, so what a policy earns
at any d and in any mix of actions follows from the means of both over each logged type (`ByType`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from agents.evaluate import evaluate
from agents.registry import make_agent
from agents.results import Figure
from agents.scored_steps import AnySplit, scored_steps
from agents.scripted.oracle import is_demo_store
from benchmarks.hacking.mixes import TYPES, Mix
from benchmarks.hacking.policies import POLICIES
from replay_sessions.errors import BadConfig
from replay_sessions.progress_bar import progress_bar
from replay_sessions.schema import Action, reply_action
from replay_sessions.store import SessionStore
from shop_env.metrics import StepRecord, bootstrap_interval, step_metrics
from shop_env.replies import MalformedReply, Reply, parse_reply
from shop_env.reward import RewardBreakdown, RewardConfig, best_breakdown, score_reply
from shop_env.reward.score import TERM_NAMES

__all__ = ["REFERENCES", "Answers", "ByType", "Earned", "Paid", "ask_policies", "by_type", "earned", "rescored"]

REFERENCES = ("random", "majority", "repeat_last", "copy_match")
Floats = NDArray[np.float64]
WORTH = ("exact_accuracy", "type_accuracy", "type_f1_macro")


@dataclass(frozen=True)
class Answers:
    """What a policy replied at each scored step.

    Attributes:
        trivial: One of policies.py.
        records: Scored under any reward; `rescored` scores them anew.
        replies, logged: At the same steps.
    """

    label: str
    trivial: bool
    records: Sequence[StepRecord]
    replies: Sequence[Reply | MalformedReply]
    logged: Sequence[Action]


class Paid(msgspec.Struct, frozen=True, kw_only=True):
    """What a reward pays a policy, per step.

    Attributes:
        reward: The mean with its interval over users.
        of_best: Its share of what replaying the log earns; None where that is nothing.
        terms: The mean of each part of the reward that is not 0.
    """

    reward: Figure
    of_best: float | None
    terms: dict[str, float]


class Earned(msgspec.Struct, frozen=True, kw_only=True):
    """A policy: what it is worth, and what each reward pays it."""

    label: str
    trivial: bool
    worth: dict[str, Figure]
    paid: dict[str, Paid]


class ByType(msgspec.Struct, frozen=True, kw_only=True):
    """A policy under Table 1 at one τ, by logged type (in the order of TYPES): a reward is base + DARS · similarity.

    Attributes:
        exact: The share answered exactly.
        best_base, best_similarity: The same of replaying the log.
    """

    base: tuple[float, ...]
    similarity: tuple[float, ...]
    exact: tuple[float, ...]
    best_base: tuple[float, ...]
    best_similarity: tuple[float, ...]

    def reward(self, dars: float, mix: Mix) -> float:
        """Per step in a mix of actions."""
        return _mixed(self.base, mix) + dars * _mixed(self.similarity, mix)

    def of_best(self, dars: float, mix: Mix) -> float:
        """As a share of what replaying the log earns."""
        return self.reward(dars, mix) / (_mixed(self.best_base, mix) + dars * _mixed(self.best_similarity, mix))

    def worth(self, mix: Mix) -> float:
        """Exact accuracy in a mix of actions."""
        return _mixed(self.exact, mix)


def _mixed(by_type: Sequence[float], mix: Mix) -> float:
    return sum(value * mix.share(kind) for value, kind in zip(by_type, TYPES, strict=True))


def ask_policies(
    store: SessionStore, split: AnySplit, *, references: Sequence[str] | None, max_sessions: int | None, seed: int
) -> list[Answers]:
    """Every trivial policy's answers, and those of the reference agents.

    Args:
        references: As `make_agent` takes them; None: REFERENCES, and the oracle where the store has one.

    Raises:
        BadConfig: An agent gave no reply at some step.
    """
    if references is None:
        references = (*REFERENCES, *(["oracle"] if is_demo_store(store) else []))
    specs = {function.__name__: f"{function.__module__}:{function.__name__}" for function in POLICIES}
    if doubled := specs.keys() & set(references):
        raise BadConfig(f"--agents names {min(doubled)}, which is among the trivial policies already.")
    logged = [step.logged for step in scored_steps(store, split, max_sessions=max_sessions)]
    found = []
    with progress_bar("policies", len(specs) + len(references)) as advance:
        for label, spec in (specs | dict(zip(references, references, strict=True))).items():
            agent = make_agent(spec, store=store)
            records = evaluate(agent, store, split, seed=seed, max_sessions=max_sessions)
            if failed := [record.error for record in records if record.error]:
                raise BadConfig(
                    f"'{label}' gave no reply at {len(failed)} of {len(records)} steps, the first time: {failed[0]} "
                    "Leave it out of --agents."
                )
            replies = [parse_reply(record.reply or "") for record in records]
            found.append(Answers(label, label in specs, records, replies, logged))
            advance(1)
    return found


def rescored(answers: Answers, reward: RewardConfig) -> tuple[list[StepRecord], list[RewardBreakdown]]:
    """The records as this reward scores them, and the parts of each step's reward."""
    parts = [score_reply(reply, logged, reward) for reply, logged in zip(answers.replies, answers.logged, strict=True)]
    records = [
        msgspec.structs.replace(
            record, reward=part.without_certainty, best_reward=best_breakdown(logged, reward).without_certainty
        )
        for record, part, logged in zip(answers.records, parts, answers.logged, strict=True)
    ]
    return records, parts


def earned(answers: Answers, rewards: Mapping[str, RewardConfig], *, samples: int) -> Earned:
    """What each reward pays a policy, and what it is worth; intervals over users."""
    paid = {}
    for name, reward in rewards.items():
        records, parts = rescored(answers, reward)
        mean = float(np.mean([record.reward for record in records]))
        best = float(np.mean([record.best_reward for record in records]))
        terms = {term: float(np.mean([getattr(part, term) for part in parts])) for term in TERM_NAMES}
        paid[name] = Paid(
            reward=Figure(mean, *bootstrap_interval(records, "mean_reward", samples=samples)),
            of_best=mean / best if best else None,
            terms={term: value for term, value in terms.items() if value},
        )
    figures = step_metrics(answers.records)
    worth = {name: Figure(figures[name], *bootstrap_interval(answers.records, name, samples=samples)) for name in WORTH}
    return Earned(label=answers.label, trivial=answers.trivial, worth=worth, paid=paid)


def by_type(answers: Answers, reward: RewardConfig) -> ByType:
    """The means over each logged type; 0 for a type that is not logged.

    Args:
        reward: A hierarchical one; its DARS is of no account.
    """
    kinds = np.array([TYPES.index(reply_action(action)["type"]) for action in answers.logged])
    without, once = (msgspec.structs.replace(reward, dars=dars) for dars in (0.0, 1.0))

    def means(values: Floats) -> tuple[float, ...]:
        counts = np.bincount(kinds, minlength=len(TYPES))
        return tuple((np.bincount(kinds, weights=values, minlength=len(TYPES)) / np.maximum(counts, 1)).tolist())

    def paid(config: RewardConfig) -> tuple[Floats, Floats]:
        records, _ = rescored(answers, config)
        return np.array([record.reward for record in records]), np.array([record.best_reward for record in records])

    (base, best_base), (full, best_full) = paid(without), paid(once)
    exact = [record.is_scorable and record.predicted == record.logged for record in answers.records]
    return ByType(
        base=means(base),
        similarity=means(full - base),
        exact=means(np.array(exact, dtype=np.float64)),
        best_base=means(best_base),
        best_similarity=means(best_full - best_base),
    )
