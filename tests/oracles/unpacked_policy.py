"""The slow, plain way: every reply in a row of its own behind its whole prompt, by the model's own attention."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from train.session_tree import SessionTree

__all__ = ["sample_row", "tree_rows", "unpacked_grpo_loss", "unpacked_log_probs"]


def tree_rows(trees: Sequence[SessionTree]) -> list[tuple[list[int], list[int]]]:
    """The trees' replies, each with its continuation after it, as rows: what comes before, and the tokens."""
    rows = []
    for tree in trees:
        for place, (fork, replies) in enumerate(zip(tree.forks, tree.replies, strict=True)):
            prompt = list(tree.trunk[:fork])
            for number, reply in enumerate(replies):
                rows.append((prompt, list(reply)))
                if tree.continuations and (other := tree.continuations[place][number]) is not None:
                    rows.append(([*prompt, *reply[: other[0]]], list(other[1])))
    return rows


@torch.no_grad()
def sample_row(
    model: Any, prompt: Sequence[int], uniforms: Tensor, temperature: float, end: int
) -> tuple[list[int], list[float]]:
    """A reply and its log-probabilities, drawn by a pass over all of the row for each token; 0: greedy."""
    reply: list[int] = []
    log_probs: list[float] = []
    for number in uniforms.tolist():
        logits = model(torch.tensor([[*prompt, *reply]])).logits[0, -1].double()
        weights = torch.softmax(logits / (temperature or 1.0), dim=-1)
        passed = weights.cumsum(dim=0) > number
        token = int(passed.float().argmax() if temperature else logits.argmax())
        reply.append(token)
        log_probs.append(float(weights[token].log()) if temperature else 0.0)
        if token == end:
            break
    return reply, log_probs


def unpacked_log_probs(model: Any, prompt: Sequence[int], reply: Sequence[int], temperature: float) -> Tensor:
    """(n,) log-probabilities of the reply's tokens."""
    logits = model(torch.tensor([[*prompt, *reply]])).logits[0, len(prompt) - 1 : -1]
    log_probs = torch.log_softmax(logits / temperature, dim=-1)
    return torch.stack([log_probs[place, token] for place, token in enumerate(reply)])


def unpacked_grpo_loss(
    model: Any,
    reference: Any,
    groups: Sequence[tuple[Sequence[int], Sequence[Sequence[int]], Sequence[float]]],
    *,
    temperature: float,
    beta: float,
) -> Tensor:
    """GRPO's loss over groups (prompt, replies, rewards), on policy, written as in the paper: loops and no masks."""
    losses = []
    for prompt, replies, rewards in groups:
        mean = sum(rewards) / len(rewards)
        deviation = (sum((reward - mean) ** 2 for reward in rewards) / (len(rewards) - 1)) ** 0.5
        for reply, reward in zip(replies, rewards, strict=True):
            advantage = (reward - mean) / (deviation + 1e-6)
            policy = unpacked_log_probs(model, prompt, reply, temperature)
            with torch.no_grad():
                frozen = unpacked_log_probs(reference, prompt, reply, temperature)
            ratio = torch.exp(policy - policy.detach())
            kl = torch.exp(frozen - policy) - (frozen - policy) - 1
            losses.append((-ratio * advantage + beta * kl).mean())
    return torch.stack(losses).mean()
