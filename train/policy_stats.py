"""Log-probabilities, entropy and self-certainty of reply tokens from hidden states, in chunks.

The logits (N, V) of a 32k-token session with a 152k vocabulary would take 20 GB; here at most `chunk` rows exist at a
time, in the backward pass too.

Self-certainty (Shop-R1, section 3) is averaged over the rationale's tokens later; here it is given per token, in the
three definitions that the paper's text, figure and equation leave open (V the vocabulary size, U = 1/V):

    kl_uniform_policy   KL(U ‖ p) = −log V − (1/V) Σ log p      about 10–30; that of the works the paper cites, default
    kl_policy_uniform   KL(p ‖ U) = log V − H(p)                0 to log V
    eq3                 (1/V) Σ p log(p / U)                    as printed: kl_policy_uniform / V
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from shop_env.reward.score import SelfCertainty

__all__ = ["PolicyStats", "policy_stats", "self_certainty"]


@dataclass(frozen=True)
class PolicyStats:
    """Per reply token (N,).

    Attributes:
        log_probs: Of the sampled token under softmax(logits / temperature); carries the gradient.
        entropy: Of that distribution, in nats; no gradient.
        self_certainty: Of softmax(logits), the model's own distribution at temperature 1; no gradient.
    """

    log_probs: Tensor
    entropy: Tensor
    self_certainty: Tensor


def policy_stats(
    hidden: Tensor,
    output_weight: Tensor,
    targets: Tensor,
    *,
    temperature: float = 1.0,
    definition: SelfCertainty = "kl_uniform_policy",
    chunk: int = 4096,
) -> PolicyStats:
    """Statistics of the tokens `targets` (N,) predicted from `hidden` (N, H) by `output_weight` (V, H)."""
    parts = []
    for rows, wanted in zip(torch.split(hidden, chunk), torch.split(targets, chunk), strict=True):
        arguments = (rows, output_weight, wanted, temperature, definition)
        if torch.is_grad_enabled() and len(hidden) > chunk:
            parts.append(checkpoint(_chunk_stats, *arguments, use_reentrant=False))
        else:
            parts.append(_chunk_stats(*arguments))
    log_probs, entropy, certainty = (torch.cat(column) for column in zip(*parts, strict=True))
    return PolicyStats(log_probs, entropy, certainty)


def _chunk_stats(
    hidden: Tensor, output_weight: Tensor, targets: Tensor, temperature: float, definition: SelfCertainty
) -> tuple[Tensor, Tensor, Tensor]:
    logits = (hidden @ output_weight.T).float()
    scaled = torch.log_softmax(logits / temperature, dim=-1)
    log_probs = scaled.gather(1, targets[:, None]).squeeze(1)
    with torch.no_grad():
        entropy = -(scaled.exp() * scaled).sum(dim=-1)
        own = scaled if temperature == 1.0 else torch.log_softmax(logits, dim=-1)
        certainty = self_certainty(own, definition)
    return log_probs, entropy, certainty


def self_certainty(log_probs: Tensor, definition: SelfCertainty = "kl_uniform_policy") -> Tensor:
    """Self-certainty (N,) of distributions given as log-probabilities (N, V)."""
    log_v = math.log(log_probs.shape[-1])
    if definition == "kl_uniform_policy":
        return -log_v - log_probs.mean(dim=-1)
    kl = log_v + (log_probs.exp() * log_probs).sum(dim=-1)
    return kl if definition == "kl_policy_uniform" else kl / log_probs.shape[-1]
