"""A group: the replies sampled at one step of a session, their parse and reward, and how groups become packed trees.

Shape letters here and in the trainer: P groups (one per prompt), G replies in each, R = P · G replies, N reply tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from shop_env.replies import MalformedReply, Reply, parse_reply
from shop_env.reward import RewardBreakdown, RewardConfig, score_reply
from shop_env.reward.similarity import exact_match
from train.rollouts.engine import SampledReply
from train.sampler import split_batches
from train.session_tree import PackedTrees, SessionTree, pack
from train.tokens import ReplySpan, SessionTokens, decode_replies


@dataclass(frozen=True)
class Rollout:
    """One sampled reply to a step: as it was drawn, parsed, and scored without self-certainty."""

    step: ReplySpan
    sampled: SampledReply
    reply: Reply | MalformedReply
    breakdown: RewardBreakdown

    @property
    def tokens(self) -> list[int]:
        return self.sampled.tokens

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
    def exact(self) -> float:
        hits = sum(isinstance(r.reply, Reply) and exact_match(r.reply.action, self.step.action) for r in self.rollouts)
        return hits / len(self.rollouts)

    @property
    def reply_tokens(self) -> int:
        return sum(len(rollout.tokens) for rollout in self.rollouts)


@dataclass(frozen=True)
class MicroBatch:
    """Groups of one forward pass, packed."""

    groups: list[Group]
    packed: PackedTrees

    @property
    def rollouts(self) -> list[Rollout]:
        """R rollouts, in the order of the packed replies."""
        return [rollout for group in self.groups for rollout in group.rollouts]


def score_group(
    trunk: SessionTokens, step: ReplySpan, replies: Sequence[SampledReply], tokenizer: Any, reward: RewardConfig
) -> Group:
    """Parses sampled replies and scores each by its action."""
    rollouts = []
    for sampled, text in zip(replies, decode_replies(tokenizer, [each.tokens for each in replies]), strict=True):
        reply = parse_reply(text)
        rollouts.append(Rollout(step, sampled, reply, score_reply(reply, step.action, reward)))
    return Group(trunk, step, rollouts)


def micro_batches(groups: Sequence[Group], max_tokens: int) -> Iterator[MicroBatch]:
    """Splits a batch, whose groups are ordered by session, into passes of at most `max_tokens` (at least one group)."""

    def cost(batch: Sequence[Group], group: Group) -> tuple[int]:
        is_trunk_packed = bool(batch) and batch[-1].trunk is group.trunk
        return (group.reply_tokens + (0 if is_trunk_packed else len(group.trunk.tokens)),)

    for batch in split_batches(groups, cost, max_tokens):
        yield MicroBatch(batch, pack(_trees(batch)))


def _trees(groups: Sequence[Group]) -> list[SessionTree]:
    """One tree for the groups of a session, up to the last group's fork."""
    trees = []
    for _, run in groupby(groups, key=lambda group: id(group.trunk)):
        own = list(run)
        forks = [group.step.start for group in own]
        replies = [[rollout.tokens for rollout in group.rollouts] for group in own]
        trees.append(SessionTree(own[-1].trunk.tokens[: forks[-1]], forks, replies))
    return trees
