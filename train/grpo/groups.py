"""Groups of scored replies to a step of a session, their packing into micro-batches, and the metrics of a batch.

Shape letters here and in the trainer: P groups (one per prompt), G replies in each, R = P · G replies, N reply tokens.
The metrics are explained in train/metrics_file.py. Logged replies that an objective adds to a group are not part of
them.
"""

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, repeat
from typing import Any

from replay_sessions.schema import ACTION_CLASSES, Action, Click
from shop_env.replies import Extraction, MalformedReply, Reply, parse_reply
from shop_env.reward import RewardBreakdown, RewardConfig, score_reply
from shop_env.reward.matching import is_exact, unlogged_fields
from shop_env.reward.score import NOTHING, TERM_NAMES
from train.flops import Work, causal_pairs
from train.grpo.likelihood import logged_continuations
from train.grpo.loss import is_informative
from train.ranks import Ranks
from train.rollouts.engine import SampledReply, StopReason
from train.sampler import deal, split_batches
from train.session_tree import Continuation, PackedTrees, SessionTree, pack
from train.tokens import ReplySpan, SessionTokens, decode_replies


@dataclass(frozen=True)
class Rollout:
    """One sampled or logged reply to a step, parsed, and scored without self-certainty.

    Attributes:
        step: The step.
        sampled: The tokens of the reply.
        reply: The parsed reply.
        breakdown: The reward without self-certainty.
        logged: The logged action as a continuation of the reply; its likelihood is the reward. None if the reward is
            no likelihood, or if the reply cannot have this continuation.
    """

    step: ReplySpan
    sampled: SampledReply
    reply: Reply | MalformedReply
    breakdown: RewardBreakdown
    logged: Continuation | None = None

    @property
    def tokens(self) -> list[int]:
        return self.sampled.tokens

    @property
    def is_sampled(self) -> bool:
        return self.sampled.stop is not StopReason.LOGGED

    @property
    def rewarded_tokens(self) -> list[int]:
        """The tokens that decide the reward and get the advantage: all, or those before the logged continuation."""
        return self.tokens if self.logged is None else self.tokens[: self.logged[0]]

    @property
    def packed_length(self) -> int:
        return len(self.tokens) + (0 if self.logged is None else len(self.logged[1]))

    @property
    def action_reward(self) -> float:
        return self.breakdown.without_certainty


@dataclass(frozen=True)
class Group:
    """The replies to one step's prompt, `trunk.tokens[:step.start]`."""

    trunk: SessionTokens
    step: ReplySpan
    rollouts: list[Rollout]

    @property
    def sampled(self) -> list[Rollout]:
        return [rollout for rollout in self.rollouts if rollout.is_sampled]

    @property
    def exact(self) -> float:
        """The share of sampled replies that match the logged action exactly."""
        hits = [is_exact(rollout.reply, self.step.action) for rollout in self.sampled]
        return sum(hits) / len(hits)

    @property
    def is_informative(self) -> bool:
        """True if rewards can differ, because of the actions, or of the rationales before the logged action."""
        measured = [None if rollout.logged is None else rollout.rewarded_tokens for rollout in self.rollouts]
        return is_informative([rollout.action_reward for rollout in self.rollouts]) or is_informative(measured)


@dataclass(frozen=True)
class MicroBatch:
    """The groups of one forward pass, packed."""

    groups: list[Group]
    packed: PackedTrees

    @property
    def rollouts(self) -> list[Rollout]:
        """The R rollouts, in the order of the packed replies."""
        return [rollout for group in self.groups for rollout in group.rollouts]


def score_group(
    trunk: SessionTokens,
    step: ReplySpan,
    replies: Sequence[SampledReply],
    tokenizer: Any,
    reward: RewardConfig,
    extraction: Extraction = "strict",
) -> Group:
    """Parses the replies to a step and scores their actions; for likelihood rewards, adds continuations instead.

    Args:
        trunk: The trunk of the session.
        step: The step.
        replies: The sampled or logged replies.
        tokenizer: The tokenizer that decodes them.
        reward: The configuration of the reward.
        extraction: The way to parse replies (shop_env.replies.extraction_of).
    """
    tokens = [each.tokens for each in replies]
    parsed = [parse_reply(text, extraction) for text in decode_replies(tokenizer, tokens)]
    if reward.kind == "log_likelihood":
        logged = logged_continuations(tokenizer, parsed, tokens, step.action)
        rollouts = [Rollout(step, *each) for each in zip(replies, parsed, repeat(NOTHING), logged, strict=False)]
    else:
        breakdowns = [score_reply(reply, step.action, reward) for reply in parsed]
        rollouts = [Rollout(step, *each) for each in zip(replies, parsed, breakdowns, strict=True)]
    return Group(trunk, step, rollouts)


def deal_groups(own: Sequence[Group], ranks: Ranks) -> list[Group]:
    """Deals the groups of all processes anew, so that all have about the same number of tokens to pass.

    After filtering, some processes may have few groups left, so that they would wait for the others. The groups of a
    trunk stay together.
    """
    sessions = [list(run) for groups in ranks.all_gather(own) for _, run in groupby(groups, lambda g: id(g.trunk))]
    costs = [
        max(group.step.start for group in session)
        + sum(rollout.packed_length for group in session for rollout in group.rollouts)
        for session in sessions
    ]
    return [group for index in deal(costs, *ranks.share) for group in sessions[index]]


def micro_batches(groups: Sequence[Group], max_tokens: int) -> Iterator[MicroBatch]:
    """Splits groups, ordered by session, into micro-batches of at most `max_tokens` tokens, but at least one group."""

    def cost(batch: Sequence[Group], group: Group) -> tuple[int]:
        is_trunk_packed = bool(batch) and batch[-1].trunk is group.trunk
        replies = sum(rollout.packed_length for rollout in group.rollouts)
        return (replies + (0 if is_trunk_packed else len(group.trunk.tokens)),)

    for batch in split_batches(groups, cost, max_tokens):
        yield MicroBatch(batch, pack(_trees(batch)))


def _trees(groups: Sequence[Group]) -> list[SessionTree]:
    """Builds one tree for the groups of each trunk, up to the fork of the last group."""
    trees = []
    for _, run in groupby(groups, key=lambda group: id(group.trunk)):
        trunk_groups = list(run)
        forks = [group.step.start for group in trunk_groups]
        replies = [[rollout.tokens for rollout in group.rollouts] for group in trunk_groups]
        logged = [[rollout.logged for rollout in group.rollouts] for group in trunk_groups]
        trees.append(SessionTree(trunk_groups[-1].trunk.tokens[: forks[-1]], forks, replies, continuations=logged))
    return trees


def rollout_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """Computes the rewards, parse results and action types of a batch's sampled replies.

    If nothing was sampled, only the metrics of logged actions are returned.
    """
    logged = _action_shares("logged", [group.step.action for group in groups]) | {"groups": len(groups)}
    rollouts = [rollout for group in groups for rollout in group.sampled]
    if not rollouts:
        return logged
    unreadable = [rollout.sampled.stop for rollout in rollouts if isinstance(rollout.reply, MalformedReply)]
    readable = [rollout.reply for rollout in rollouts if isinstance(rollout.reply, Reply)]
    scorable = [group.exact for group in groups if not unlogged_fields(group.step.action)]
    count = len(rollouts)
    metrics = _mean_and_deviation("action_reward", [rollout.action_reward for rollout in rollouts])
    for term in TERM_NAMES:
        metrics |= _mean_and_deviation(f"reward_{term}", [getattr(rollout.breakdown, term) for rollout in rollouts])
    return {
        **metrics,
        "exact": sum(scorable) / max(len(scorable), 1),
        "malformed": unreadable.count(StopReason.END) / count,
        "cut": unreadable.count(StopReason.LENGTH) / count,
        "no_rationale": sum(not reply.has_rationale for reply in readable) / count,
        **_action_shares("sampled", [reply.action for reply in readable]),
        "reply_tokens": sum(len(rollout.tokens) for rollout in rollouts) / count,
        **logged,
    }


def measured_metrics(name: str, values: Sequence[float | None]) -> dict[str, float]:
    """Computes mean and standard deviation of s(r) or another number of the replies; empty if no reply has one."""
    measured = [value for value in values if value is not None]
    return _mean_and_deviation(name, measured) if measured else {}


def sampled_work(groups: Sequence[Group]) -> Work:
    """Computes the work of sampling: each trunk is prefilled once up to its last fork, then each reply is decoded."""
    prompts: dict[int, int] = {}
    total = Work()
    for group in groups:
        if group.sampled:
            prompts[id(group.trunk)] = max(group.step.start, prompts.get(id(group.trunk), 0))
        for length in (len(rollout.tokens) for rollout in group.sampled):
            total += Work(length - 1, length, (length - 1) * group.step.start + causal_pairs(length - 1))
    return total + Work(sum(prompts.values()), 0, sum(map(causal_pairs, prompts.values())))


def _action_shares(prefix: str, actions: Sequence[Action]) -> dict[str, float]:
    """Computes the shares of each type of action and of the most frequent action; empty without actions."""
    if not actions:
        return {}
    shares = {
        f"{prefix}_{name}": sum(isinstance(action, kind) for action in actions) / len(actions)
        for name, kind in ACTION_CLASSES.items()
    }
    # A click's subtype is logged but not predicted.
    predicted = (Click(name=action.name) if isinstance(action, Click) else action for action in actions)
    ((_, times),) = Counter(predicted).most_common(1)
    return shares | {f"{prefix}_commonest": times / len(actions)}


def _mean_and_deviation(name: str, values: Sequence[float]) -> dict[str, float]:
    return {name: statistics.fmean(values), f"{name}_std": statistics.pstdev(values)}
