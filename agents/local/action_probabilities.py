"""A policy's probability of each action of a page, for the likelihood metrics (shop_env.metrics.action_likelihood).

A policy writes a rationale before its action, so the probability of an action is the expectation, over rationales r
that the policy itself writes at temperature 1, of the action's share among the page's candidates. Of K draws:

    p(a | page) = (Σ_r π(r, a | page) / Σ_b π(r, b | page) + (1 + M) / candidates) / (K + 1)

The last term counts one more draw that favours nothing (additive smoothing): without it an action that none of a few
rationales leads to would look impossible, and NLL would depend more on K than on the policy. A malformed draw favours
nothing either: the M of them are divided evenly among all candidates, so that the probabilities sum to 1. The
candidates are those of shop_env.candidates and the actions of the draws themselves.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from replay_sessions.schema import Action
from shop_env.candidates import candidate_actions
from shop_env.observation import Observation
from shop_env.replies import Reply, format_reply, parse_reply
from train.policy import Policy
from train.rollouts.config import SamplingConfig
from train.rollouts.local import generate
from train.session_tree import SessionTree, pack
from train.tokens import decode_replies, reply_tokens, stop_token


def action_probabilities(
    policy: Policy,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    observations: Sequence[Observation],
    *,
    max_new_tokens: int,
    uniforms: Tensor,
) -> list[dict[Action, float]]:
    """The probability of each candidate on each page.

    Args:
        prompts: The tokens of each observation's prompt.
        uniforms: What the rationales are drawn by (train.rollouts.local.draw_uniforms), as many for each page as
            its second dimension says: more cost time and lower the variance.
    """
    rationales = uniforms.shape[1]
    sampling = SamplingConfig(
        temperature=1.0, max_new_tokens=max_new_tokens, end_token=stop_token(tokenizer), num_generations=rationales
    )
    probabilities = []
    replies_of_prompts = generate(policy, prompts, sampling, uniforms=uniforms)
    for prompt, observation, drawn in zip(prompts, observations, replies_of_prompts, strict=True):
        replies = [parse_reply(text) for text in decode_replies(tokenizer, [reply.tokens for reply in drawn])]
        readable = [reply for reply in replies if isinstance(reply, Reply)]
        candidates = list(dict.fromkeys([*candidate_actions(observation), *(reply.action for reply in readable)]))
        counts = Counter(reply.rationale for reply in readable)
        shares = _shares(policy, tokenizer, prompt, list(counts), candidates)
        for_none = 1 + rationales - len(readable)
        votes = torch.tensor(list(counts.values()), dtype=torch.float64) @ shares + for_none / len(candidates)
        probabilities.append(dict(zip(candidates, (votes / (rationales + 1)).tolist(), strict=True)))
    return probabilities


@torch.no_grad()
def _shares(
    policy: Policy, tokenizer: Any, prompt: Sequence[int], rationales: Sequence[str], candidates: Sequence[Action]
) -> Tensor:
    """(rationales, candidates): each candidate's share behind each rationale; rows sum to 1."""
    if not rationales:
        return torch.zeros(0, len(candidates), dtype=torch.float64)
    texts = [format_reply(rationale, action) for rationale in rationales for action in candidates]
    replies = reply_tokens(tokenizer, texts)
    groups = [replies[start : start + len(candidates)] for start in range(0, len(replies), len(candidates))]
    packed = pack([SessionTree(prompt, [len(prompt)] * len(groups), groups)]).to(policy.device)
    log_probs = policy.log_probs(packed)
    # The rationale's own tokens are the same in a whole row and cancel out of its shares.
    totals = [part.sum() for part in log_probs.double().split(packed.reply_lengths)]
    return torch.stack(totals).cpu().view(len(groups), len(candidates)).softmax(dim=1)
