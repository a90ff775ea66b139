"""The reward `log_likelihood`: how likely the sampled rationale makes the logged action (arXiv 2602.03979).

    sampled   {"rationale": "I want tea", "action": {"type": "click", "name": "search"}}
    logged                              └─ ", "action": {"type": "click", "name": "tea"}} and the end of the reply

    reward = mean log-probability of the logged tokens under the policy that sampled, clipped to [-8, 0]

The logged tokens are a continuation of the sampled ones in the session tree, so the pass that trains measures them. The
log-probabilities are those of temperature 1, as in the likelihood columns of a leaderboard, before any update on the
batch. The reward is a constant: it passes no gradient on. The rationale's tokens, and what comes before them in the
reply, get the advantage. The sampled action does not decide the reward; its tokens have advantage 0 and keep their KL,
and the logged ones are not trained on. Their likelihood is SFT's objective.

The mean is over the tokens behind the rationale only: neither its length nor what it copies enters by itself. A reply
that cannot be read or was cut off, or whose action comes before its rationale, earns the least, and all its tokens get
the advantage. Where all replies to a step have one rationale, or none (logs without rationales), their rewards are
equal and the group teaches nothing; a policy that writes none in its first batch is refused.

A group's differences in reward are log-likelihoods, whose size means something: `grpo.scale_rewards = "none"` leaves
them as they are.
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
    """The logged action as a continuation of each reply to a step, behind its rationale; None: there is no place.

    Replies that begin alike share one: all but the first have a continuation without tokens.

    Args:
        tokens_R: Of the replies.
    """
    places: dict[tuple[int, ...], tuple[int, str] | None] = {}
    texts: dict[tuple[tuple[int, ...], str], str] = {}
    keys_R = []
    for reply, sampled in zip(replies, map(tuple, tokens_R), strict=True):
        if sampled not in places:  # equal replies are common
            places[sampled] = _place(tokenizer, reply, sampled, logged)
        place, key = places[sampled], None
        if place is not None and isinstance(reply, Reply):
            key = sampled[: place[0]], reply.rationale
            texts.setdefault(key, place[1])
        keys_R.append(key)
    tokens = dict(zip(texts, reply_tokens(tokenizer, [*texts.values()]) if texts else [], strict=True))
    return [(len(key[0]), tokens.pop(key, [])) if key else None for key in keys_R]


def _place(
    tokenizer: Any, reply: Reply | MalformedReply, tokens: Sequence[int], logged: Action
) -> tuple[int, str] | None:
    """The number of a reply's tokens that come before the logged action's, and the text of what follows them."""
    if isinstance(reply, MalformedReply):
        return None
    span = reply.rationale_span
    _, _, behind = format_reply("", logged).partition('""')
    text = f'{reply.text[: span[1]]}"{behind}'
    if isinstance(parse_reply(text, "strict_input"), MalformedReply):  # the action came first
        return None
    _, shared = rationale_tokens(tokenizer, tokens, span)
    # The rationale's last token may reach beyond its end, to where the two actions differ.
    while not text.startswith(before := tokenizer.decode(tokens[:shared], skip_special_tokens=True)):
        shared -= 1
    return shared, text[len(before) :]


def likelihood_reward(log_probs: Tensor) -> float:
    """The reward by the log-probabilities (n,) of the logged tokens; n is 0 where a reply has no such continuation.

    >>> import torch
    >>> [likelihood_reward(torch.tensor(each)) for each in ([-1.0, -2.0], [-30.0], [1e-9], [])]
    [-1.5, -8.0, 0.0, -8.0]
    """
    return max(LEAST, min(MOST, log_probs.mean().item())) if len(log_probs) else LEAST


def check_rationales(metrics: Mapping[str, float]) -> None:
    """Refuses a likelihood behind rationales that are never written: it is the same for all replies to a step."""
    unreadable = metrics["malformed"] + metrics["cut"]
    if metrics["no_rationale"] > 0 and metrics["no_rationale"] + unreadable > 1 - 1e-6:
        raise BadConfig(
            "reward log_likelihood compares rationales, and no reply of the first batch has one "
            f"({metrics['no_rationale']:.0%} are readable and without, {unreadable:.0%} are malformed). Start from a "
            "policy that writes rationales; without them SFT maximizes the same likelihood."
        )
