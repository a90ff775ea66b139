"""What policies earn on a store under every reward, beside what they are worth.

store ─► each policy replies at every scored step, once ─► its replies under each reward ─► Earned, ByType, StoreRecord

A policy is worth what it predicts: exact accuracy, type accuracy, macro-F1. Rewards are those of the text alone
(certainty.py has the rest). With a DARS factor d a reward is base + d · similarity, so what a policy earns
at any d and in any mix of actions follows from the means of both over each logged type (`ByType`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from agents.registry import make_agent
from benchmarks.studies.reward_hacking.arithmetic import THRESHOLDS, with_scale
from benchmarks.studies.reward_hacking.guesses import TYPES, Chances, Guess, Mix, count_mix, measure_guesses
from benchmarks.studies.reward_hacking.policies import POLICIES
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.progress import track
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Estimate
from replay_sessions.schema import Action, reply_action
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.results import is_demo_store
from shop_env.evaluation.scored_steps import AnySplit, scored_steps
from shop_env.metrics import StepRecord, estimate_metric
from shop_env.metrics.statistics import Floats
from shop_env.replies import MalformedReply, Reply, parse_reply
from shop_env.reward import REWARD_PRESETS, RewardBreakdown, RewardConfig, best_breakdown, score_reply
from shop_env.reward.score import TERM_NAMES

REFERENCES = ("random", "majority", "repeat_last", "copy_match")
WORTH = ("exact_accuracy", "type_accuracy", "type_f1_macro")


@dataclass(frozen=True)
class Answers:
    """What a policy replied at each scored step.

    Attributes:
        trivial: One of policies.py.
        records: Scored under any reward; `rescore` scores them anew.
        replies, logged: At the same steps.
    """

    label: str
    trivial: bool
    records: Sequence[StepRecord]
    replies: Sequence[Reply | MalformedReply]
    logged: Sequence[Action]


class Paid(Record):
    """What a reward pays a policy, per step.

    Attributes:
        of_best: The share of what replaying the log earns; None where that is nothing.
        terms: The mean of each part of the reward that is not 0.
    """

    reward: Estimate
    of_best: float | None
    terms: dict[str, float]


class Earned(Record):
    """A policy: what it is worth, and what each reward pays it."""

    label: str
    trivial: bool
    worth: dict[str, Estimate]
    paid: dict[str, Paid]


class ByType(Record):
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
        return _average(self.base, mix) + dars * _average(self.similarity, mix)

    def of_best(self, dars: float, mix: Mix) -> float:
        """As a share of what replaying the log earns."""
        return self.reward(dars, mix) / (_average(self.best_base, mix) + dars * _average(self.best_similarity, mix))

    def worth(self, mix: Mix) -> float:
        """Exact accuracy in a mix of actions."""
        return _average(self.exact, mix)


def _average(by_type: Sequence[float], mix: Mix) -> float:
    return sum(value * mix.share(kind) for value, kind in zip(by_type, TYPES, strict=True))


class StoreRecord(Record):
    """What policies earn on a store, and how similar wrong guesses are there.

    Attributes:
        guesses: By name and τ.
        by_type: By policy, for each τ of THRESHOLDS.
    """

    steps: int
    sessions: int
    users: int
    mix: Mix
    guesses: dict[str, dict[str, Chances]]
    earned: list[Earned]
    by_type: dict[str, list[ByType]]


def measure_store(
    store: SessionStore, split: AnySplit, answers: Sequence[Answers], *, max_sessions: int | None
) -> tuple[StoreRecord, dict[str, Guess]]:
    """Scores the replies of all policies under every reward.

    Raises:
        BadConfig: The store's shoppers do nothing but terminate.
    """
    guesses = measure_guesses(scored_steps(store, split, max_sessions=max_sessions))
    records, mix = answers[0].records, count_mix(answers[0].logged, "this store")
    if mix.terminate == mix.steps:
        raise BadConfig(f"Every scored step of '{store.path}' is a terminate action: there is no other to pay.")
    earned = [compute_earned(policy, REWARD_PRESETS) for policy in track(answers, "rewards")]
    rewards = [with_scale(threshold=tau) for tau in THRESHOLDS]
    record = StoreRecord(
        steps=len(records),
        sessions=len({record.session_id for record in records}),
        users=len({record.user_id for record in records}),
        mix=mix,
        guesses={name: {str(tau): guess.at(tau) for tau in THRESHOLDS} for name, guess in guesses.items()},
        earned=earned,
        by_type={policy.label: [compute_by_type(policy, reward) for reward in rewards] for policy in answers},
    )
    return record, guesses


def collect_answers(
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
    if duplicates := specs.keys() & set(references):
        raise BadConfig(f"--agents names {min(duplicates)}, which is among the trivial policies already.")
    logged = [step.logged for step in scored_steps(store, split, max_sessions=max_sessions)]
    answers = []
    everyone = specs | {name: name for name in references}
    for label, spec in track(everyone.items(), "policies"):
        records = evaluate(make_agent(spec, store=store), store, split, seed=seed, max_sessions=max_sessions)
        if failed := [record.error for record in records if record.error]:
            raise BadConfig(
                f"'{label}' gave no reply at {len(failed)} of {len(records)} steps, the first time: {failed[0]} "
                "Leave it out of --agents."
            )
        replies = [parse_reply(record.reply or "") for record in records]
        answers.append(Answers(label, label in specs, records, replies, logged))
    return answers


def rescore(answers: Answers, reward: RewardConfig) -> tuple[list[StepRecord], list[RewardBreakdown]]:
    """The records as this reward scores them, and the parts of each step's reward."""
    parts = [score_reply(reply, logged, reward) for reply, logged in zip(answers.replies, answers.logged, strict=True)]
    records = [
        msgspec.structs.replace(
            record, reward=part.without_certainty, best_reward=best_breakdown(logged, reward).without_certainty
        )
        for record, part, logged in zip(answers.records, parts, answers.logged, strict=True)
    ]
    return records, parts


def compute_earned(answers: Answers, rewards: Mapping[str, RewardConfig]) -> Earned:
    """What each reward pays a policy, and what it is worth; intervals over users."""
    paid = {}
    for name, reward in rewards.items():
        records, parts = rescore(answers, reward)
        estimate = estimate_metric(records, "mean_reward")
        best = float(np.mean([record.best_reward for record in records]))
        terms = {term: float(np.mean([getattr(part, term) for part in parts])) for term in TERM_NAMES}
        paid[name] = Paid(
            reward=estimate,
            of_best=estimate.value / best if best else None,
            terms={term: value for term, value in terms.items() if value},
        )
    worth = {name: estimate_metric(answers.records, name) for name in WORTH}
    return Earned(label=answers.label, trivial=answers.trivial, worth=worth, paid=paid)


def compute_by_type(answers: Answers, reward: RewardConfig) -> ByType:
    """The means over each logged type; 0 for a type that is not logged.

    Args:
        reward: A hierarchical one; its DARS is ignored.
    """
    kinds = np.array([TYPES.index(reply_action(action)["type"]) for action in answers.logged])
    counts = np.maximum(np.bincount(kinds, minlength=len(TYPES)), 1)

    def means(values: Floats) -> tuple[float, ...]:
        return tuple((np.bincount(kinds, weights=values, minlength=len(TYPES)) / counts).tolist())

    def rewards(dars: float) -> Floats:
        records, _ = rescore(answers, msgspec.structs.replace(reward, dars=dars))
        return np.array([(record.reward, record.best_reward) for record in records]).T

    without, once = rewards(0.0), rewards(1.0)
    exact = [record.is_scorable and record.predicted == record.logged for record in answers.records]
    return ByType(
        base=means(without[0]),
        similarity=means(once[0] - without[0]),
        exact=means(np.array(exact, dtype=np.float64)),
        best_base=means(without[1]),
        best_similarity=means(once[1] - without[1]),
    )
