"""A group: the replies sampled at one step of a session, what they say and earn, and how groups become packed trees.

Shape letters here and in the trainer: P groups (one per prompt), G replies in each, R = P · G replies, N reply tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from shop_env.replies import MalformedReply, Reply, parse_reply
from shop_env.reward import RewardBreakdown, RewardConfig, score_reply
from shop_env.reward.terms import exact_match
from train.rollout_engines.sampling import SampledReply
from train.session_tree import PackedTrees, SessionTree, pack
from train.tokens import ReplySpan, SessionTokens, decode_replies

__all__ = ["Group", "Part", "Rollout", "parts", "score"]


@dataclass(frozen=True)
class Rollout:
    """One sampled reply to a step: how it was drawn, what it says, and what it earned, self-certainty aside."""

    step: ReplySpan
    sampled: SampledReply
    reply: Reply | MalformedReply
    earned: RewardBreakdown

    @property
    def tokens(self) -> list[int]:
        return self.sampled.tokens

    @property
    def action_reward(self) -> float:
        return self.earned.without_certainty


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

    def without_trunk(self) -> "Group":
        """The same, small enough to be given to other processes."""
        return replace(self, trunk=replace(self.trunk, tokens=(), replies=[]))

    @property
    def reply_tokens(self) -> int:
        return sum(len(rollout.tokens) for rollout in self.rollouts)


@dataclass(frozen=True)
class Part:
    """Groups that go through the model in one forward pass, and that pass's tokens."""

    groups: list[Group]
    packed: PackedTrees

    @property
    def rollouts(self) -> list[Rollout]:
        """R of them, in the order of the packed replies."""
        return [rollout for group in self.groups for rollout in group.rollouts]

    def sampled_log_probs(self) -> Tensor:
        """(N,) of the replies' tokens, as they were drawn."""
        return torch.tensor([log_prob for rollout in self.rollouts for log_prob in rollout.sampled.log_probs])


def score(
    trunk: SessionTokens, step: ReplySpan, replies: Sequence[SampledReply], tokenizer: Any, reward: RewardConfig
) -> Group:
    """Reads sampled replies and gives each its action reward."""
    rollouts = []
    for sampled, text in zip(replies, decode_replies(tokenizer, [each.tokens for each in replies]), strict=True):
        reply = parse_reply(text)
        rollouts.append(Rollout(step, sampled, reply, score_reply(reply, step.action, reward)))
    return Group(trunk, step, rollouts)


def parts(groups: Sequence[Group], max_tokens: int) -> Iterator[Part]:
    """Cuts a batch, whose groups come session by session, into passes of at most `max_tokens` (at least one group)."""
    part: list[Group] = []
    tokens = 0
    trunk: SessionTokens | None = None
    for group in groups:
        cost = group.reply_tokens + (len(group.trunk.tokens) if group.trunk is not trunk else 0)
        if part and tokens + cost > max_tokens:
            yield Part(part, pack(_trees(part)))
            part, tokens = [], len(group.trunk.tokens) if group.trunk is trunk else 0
        part.append(group)
        tokens += cost
        trunk = group.trunk
    if part:
        yield Part(part, pack(_trees(part)))


def _trees(groups: Sequence[Group]) -> list[SessionTree]:
    """Groups of the same session become one tree."""
    trees: list[SessionTree] = []
    trunk: SessionTokens | None = None
    for group in groups:
        earlier = trees.pop() if group.trunk is trunk else SessionTree([], [], [])
        replies = [rollout.tokens for rollout in group.rollouts]
        trunk = group.trunk
        prompt = trunk.tokens[: group.step.start]
        trees.append(SessionTree(prompt, [*earlier.forks, len(prompt)], [*earlier.replies, replies]))
    return trees
