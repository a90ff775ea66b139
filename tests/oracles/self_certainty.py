"""The three definitions of self-certainty, as written on paper: nested loops in float64 (Shop-R1, section 3).

`probabilities` holds one distribution over the vocabulary per token of the rationale.
"""

import math
from collections.abc import Sequence

__all__ = ["DEFINITIONS", "eq3", "kl_policy_uniform", "kl_uniform_policy", "softmax"]

Distributions = Sequence[Sequence[float]]


def softmax(logits: Sequence[float]) -> list[float]:
    """Logits as probabilities."""
    highest = max(logits)
    weights = [math.exp(logit - highest) for logit in logits]
    return [weight / math.fsum(weights) for weight in weights]


def kl_uniform_policy(probabilities: Distributions) -> float:
    """mean_j KL(U ‖ p_j): Kang et al. 2502.18581, Zhao et al. 2505.19590."""
    total = 0.0
    for p in probabilities:
        uniform = 1 / len(p)
        total += math.fsum(uniform * math.log(uniform / p_i) for p_i in p)
    return total / len(probabilities)


def kl_policy_uniform(probabilities: Distributions) -> float:
    """mean_j KL(p_j ‖ U): the words around equation 3."""
    total = 0.0
    for p in probabilities:
        uniform = 1 / len(p)
        total += math.fsum(p_i * math.log(p_i / uniform) for p_i in p if p_i > 0)
    return total / len(probabilities)


def eq3(probabilities: Distributions) -> float:
    """Equation 3 as printed: (1 / (N |V|)) Σ_j Σ_i p_ij log(p_ij / U_i)."""
    return kl_policy_uniform(probabilities) / len(probabilities[0])


DEFINITIONS = {"kl_uniform_policy": kl_uniform_policy, "kl_policy_uniform": kl_policy_uniform, "eq3": eq3}
