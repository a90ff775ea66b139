"""Log-probabilities, entropy and self-certainty of reply tokens from hidden states, in chunks.

The logits (N, V) of a 32k-token session with a 152k vocabulary would take 20 GB; here at most CHUNK_BYTES of them
exist at a time, in the backward pass too. Products may be in bfloat16 (autocast); logits and all that follows from them
are float32.

Self-certainty (Shop-R1, section 3) is averaged over the rationale's tokens later; here it is computed per token, in the
three definitions that the paper's text, figure and equation leave open, of which the first is the default (V the
vocabulary size, U = 1/V):

    kl_uniform_policy   KL(U ‖ p) = −log V − (1/V) Σ log p      about 10–30; that of the works the paper cites
    kl_policy_uniform   KL(p ‖ U) = log V − H(p)                0 to log V
    eq3                 (1/V) Σ p log(p / U)                    as printed: kl_policy_uniform / V
"""

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from shop_env.reward.score import SelfCertainty

CHUNK_BYTES = 256 << 20


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

    def detach(self) -> "PolicyStats":
        """A copy without gradient."""
        return PolicyStats(self.log_probs.detach(), self.entropy, self.self_certainty)

    def of(self, tokens: slice) -> "PolicyStats":
        """The statistics of some of the tokens."""
        return PolicyStats(self.log_probs[tokens], self.entropy[tokens], self.self_certainty[tokens])


def log_probabilities(
    hidden: Tensor,
    output_weight: Tensor,
    *,
    targets: Tensor,
    temperature: float = 1.0,
) -> Tensor:
    """(N,) of the tokens `targets` (N,) predicted from `hidden` (N, H) by `output_weight` (V, H), and nothing else."""
    return _in_chunks(hidden, output_weight, targets, temperature, None)[0]


def policy_stats(
    hidden: Tensor,
    output_weight: Tensor,
    *,
    targets: Tensor,
    temperature: float = 1.0,
    definition: SelfCertainty = "kl_uniform_policy",
) -> PolicyStats:
    """Statistics of the tokens `targets` (N,) predicted from `hidden` (N, H) by `output_weight` (V, H)."""
    return PolicyStats(*_in_chunks(hidden, output_weight, targets, temperature, definition))


def _in_chunks(
    hidden: Tensor, output_weight: Tensor, targets: Tensor, temperature: float, definition: SelfCertainty | None
) -> list[Tensor]:
    """`_chunk_stats` of few rows at a time; their logits are computed again in the backward pass."""
    function = partial(_chunk_stats, temperature=temperature, definition=definition)
    rows = max(1, CHUNK_BYTES // (4 * output_weight.shape[0]))
    if torch.is_grad_enabled() and len(hidden) > rows:
        function = partial(checkpoint, function, use_reentrant=False)
    chunks = zip(torch.split(hidden, rows), torch.split(targets, rows), strict=True)
    columns = zip(*(function(states, output_weight, own_targets) for states, own_targets in chunks), strict=True)
    return [torch.cat(column) for column in columns]


def _chunk_stats(
    hidden: Tensor, output_weight: Tensor, targets: Tensor, *, temperature: float, definition: SelfCertainty | None
) -> tuple[Tensor, ...]:
    """Log-probabilities of the targets; with a definition also entropy and self-certainty, without gradient."""
    logits = (hidden @ output_weight.T).float()
    scaled = torch.log_softmax(logits / temperature, dim=-1)
    log_probs = scaled.gather(1, targets[:, None]).squeeze(1)
    if definition is None:
        return (log_probs,)
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
