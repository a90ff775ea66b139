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

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from replay_sessions.schema import Action
from shop_env.replies import MalformedReply, Reply, format_reply, parse_reply
from train.session_tree import Continuation
from train.tokens import rationale_tokens, reply_tokens

LEAST, MOST = -8.0, 0.0


def logged_continuations(
    tokenizer: Any, replies: Sequence[Reply | MalformedReply], tokens_R: Sequence[Sequence[int]], logged: Action
) -> list[Continuation | None]:
    """What the shopper did as a continuation of each sampled reply behind its rationale; None: there is no such place.

    Args:
        tokens_R: Of the replies.
    """
    _, _, behind = format_reply("", logged).partition('""')
    shared_R, texts_R = [], []
    for reply, tokens in zip(replies, tokens_R, strict=True):
        shared, text = 0, ""
        if isinstance(reply, Reply):
            text = f'{reply.text[: reply.rationale_span[1]]}"{behind}'
            if isinstance(parse_reply(text), MalformedReply):  # the action came first
                text = ""
        if text:
            _, shared = rationale_tokens(tokenizer, tokens, reply.rationale_span)
            # The rationale's last token may reach beyond its end, where the two actions differ.
            while not text.startswith(before := tokenizer.decode(tokens[:shared], skip_special_tokens=True)):
                shared -= 1
            text = text[len(before) :]
        shared_R.append(shared)
        texts_R.append(text)
    pairs = zip(shared_R, texts_R, reply_tokens(tokenizer, texts_R), strict=True)
    return [(shared, tokens) if text else None for shared, text, tokens in pairs]


def likelihood_reward(log_probs: Tensor) -> float:
    """The reward by the log-probabilities (n,) of the logged tokens; n is 0 where a reply has no such continuation.

    >>> import torch
    >>> [likelihood_reward(torch.tensor(each)) for each in ([-1.0, -2.0], [-30.0], [1e-9], [])]
    [-1.5, -8.0, 0.0, -8.0]
    """
    return max(LEAST, min(MOST, log_probs.mean().item())) if len(log_probs) else LEAST
