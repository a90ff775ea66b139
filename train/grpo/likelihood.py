"""The reward `log_likelihood`: how likely the sampled rationale makes the logged action (arXiv 2602.03979).

    sampled   {"rationale": "I want tea", "action": {"type": "click", "name": "search"}}
    logged                              └─ ", "action": {"type": "click", "name": "tea"}} and the end of the reply

    reward = mean log-probability of the logged tokens under the policy that sampled, clipped to [-8, 0]

The logged tokens are a continuation of the sampled ones in the session tree, so that the training pass measures them.
Log-probabilities are at temperature 1, as in the likelihood columns of a leaderboard, and before any update on the
batch. The reward is a constant, without gradient. The tokens of the rationale, and those before it in the reply, get
the advantage. The sampled action does not decide the reward: its tokens have advantage 0 and keep their KL. The logged
tokens are not trained on, because their likelihood is SFT's objective.

The mean is over the tokens behind the rationale only, so that the rationale's length and the text that it copies do not
count by themselves. Malformed and cut replies, and replies with the action before the rationale, earn the least, and
all their tokens get the advantage. If all replies to a step have the same rationale, or none (logs without rationales),
their rewards are equal, and the group is not informative. A policy that writes no rationale in its first batch is
refused.

Differences of rewards in a group are differences of log-likelihoods, which have a meaningful size;
`grpo.scale_rewards = "none"` keeps it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action
from shop_env.replies import MalformedReply, Reply, format_reply, parse_reply
from train.session_tree import Continuation
from train.tokens import rationale_tokens, reply_tokens

LEAST, MOST = -8.0, 0.0


def logged_continuations(
    tokenizer: Any, replies: Sequence[Reply | MalformedReply], tokens_R: Sequence[Sequence[int]], logged: Action
) -> list[Continuation | None]:
    """Builds for each reply to a step the logged action as a continuation behind the reply's rationale.

    Replies with the same tokens up to there share one continuation: only that of the first one has tokens.

    Args:
        tokenizer: The tokenizer.
        replies: The parsed replies.
        tokens_R: The tokens of the replies.
        logged: The logged action.

    Returns:
        The continuations; None for replies that are malformed, or have the action before the rationale.
    """
    continuations: dict[tuple[int, ...], tuple[int, str] | None] = {}
    texts: dict[tuple[tuple[int, ...], str], str] = {}
    keys_R = []
    for reply, sampled in zip(replies, map(tuple, tokens_R), strict=True):
        if sampled not in continuations:  # equal replies are common
            continuations[sampled] = _find_continuation(tokenizer, reply, sampled, logged)
        continuation, key = continuations[sampled], None
        if continuation is not None and isinstance(reply, Reply):
            key = sampled[: continuation[0]], reply.rationale
            texts.setdefault(key, continuation[1])
        keys_R.append(key)
    tokens = dict(zip(texts, reply_tokens(tokenizer, [*texts.values()]) if texts else [], strict=True))
    return [(len(key[0]), tokens.pop(key, [])) if key else None for key in keys_R]


def _find_continuation(
    tokenizer: Any, reply: Reply | MalformedReply, tokens: Sequence[int], logged: Action
) -> tuple[int, str] | None:
    """Returns the number of a reply's tokens before its continuation, and the text of the continuation, or None."""
    if isinstance(reply, MalformedReply):
        return None
    span = reply.rationale_span
    _, _, behind = format_reply("", logged).partition('""')
    text = f'{reply.text[: span[1]]}"{behind}'
    if isinstance(parse_reply(text, "strict_scroll"), MalformedReply):  # leniently read, the action may come first
        return None
    _, shared = rationale_tokens(tokenizer, tokens, span)
    # The last token of the rationale may reach beyond its end, into text in which the two actions differ.
    while not text.startswith(before := tokenizer.decode(tokens[:shared], skip_special_tokens=True)):
        shared -= 1
    return shared, text[len(before) :]


def likelihood_reward(log_probs: Tensor) -> float:
    """Computes the reward from the log-probabilities (n,) of the logged tokens; n is 0 without a continuation.

    >>> import torch
    >>> [likelihood_reward(torch.tensor(each)) for each in ([-1.0, -2.0], [-30.0], [1e-9], [])]
    [-1.5, -8.0, 0.0, -8.0]
    """
    return max(LEAST, min(MOST, log_probs.mean().item())) if len(log_probs) else LEAST


def check_rationales(metrics: Mapping[str, float]) -> None:
    """Checks that replies have rationales, because without them all replies to a step get the same likelihood.

    Raises:
        BadConfig: No reply of the first batch has a rationale.
    """
    unreadable = metrics["malformed"] + metrics["cut"]
    if metrics["no_rationale"] > 0 and metrics["no_rationale"] + unreadable > 1 - 1e-6:
        raise BadConfig(
            "reward log_likelihood compares rationales, and no reply of the first batch has one "
            f"({metrics['no_rationale']:.0%} are readable and without, {unreadable:.0%} are malformed). Start from a "
            "policy that writes rationales; without them SFT maximizes the same likelihood."
        )
