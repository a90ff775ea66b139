"""What self-certainty alone can pay: α · s(r) of distributions that are ever more certain, exactly.

One token has the probability 1 - u and all others share u alike, which is p ∝ exp(c · z) with z = 1 for one token, 0 for
the others and c = log((1 - u)(V - 1) / u). Then, for a rationale all of whose tokens are so,

    kl_uniform_policy   -log V - (log(1 - u) + (V - 1) log(u / (V - 1))) / V      grows with c without bound, about c less log V
    kl_policy_uniform   log V + (1 - u) log(1 - u) + u log(u / (V - 1))           at most log V
    eq3                 the same / V                                              at most log V / V

The first counts every token alike, the improbable ones as much as the sampled one, so it pays for lowering what would
never be sampled anyway: the text stays as it is, and so does KL(π ‖ π_ref), which counts only what is sampled. Computed
from log u, since 1 - u is soon 1 in any floating point.
"""  # noqa: E501 - a formula is a line

import math
from collections.abc import Sequence
from itertools import product

import msgspec
import numpy as np
from scipy.optimize import brentq

from shop_env.metrics.statistics import Floats
from shop_env.reward import RewardConfig
from shop_env.reward.score import SelfCertainty

DEFINITIONS: tuple[SelfCertainty, ...] = ("kl_uniform_policy", "kl_policy_uniform", "eq3")
PRIZES = {"click_name_present": "name present", "action_type": "type of action", "format": "format"}


class Crossing(msgspec.Struct, frozen=True):
    """When α · s(r) reaches another part of the reward.

    Attributes:
        prize: The part (PRIZES), worth `points`.
        gap: The logit of the one token above the others at which it does; None: never.
        rest: log10 of the probability that the others share then.
    """

    definition: str
    vocabulary: int
    prize: str
    points: float
    gap: float | None
    rest: float | None


def compute_certainty(log_rest: Floats, vocabulary: int, definition: SelfCertainty) -> Floats:
    """s of a token whose alternatives share exp(log_rest), (N,) -> (N,).

    >>> compute_certainty(np.log([0.5]), 2, "kl_policy_uniform").round(12).tolist()
    [0.0]
    """
    rest, log_v = np.exp(log_rest), math.log(vocabulary)
    log_peak, log_other = np.log1p(-rest), log_rest - math.log(vocabulary - 1)
    if definition == "kl_uniform_policy":
        return -log_v - (log_peak + (vocabulary - 1) * log_other) / vocabulary
    divergence = log_v + (1 - rest) * log_peak + rest * log_other
    return divergence if definition == "kl_policy_uniform" else divergence / vocabulary


def compute_gap(log_rest: Floats, vocabulary: int) -> Floats:
    """c: how far the logit of the one token lies above the others'."""
    gap: Floats = np.log1p(-np.exp(log_rest)) - (log_rest - math.log(vocabulary - 1))
    return gap


def upper_bound(vocabulary: int, definition: SelfCertainty) -> float:
    """The least upper bound of s."""
    bounds = {"kl_policy_uniform": math.log(vocabulary), "eq3": math.log(vocabulary) / vocabulary}
    return bounds.get(definition, math.inf)


def find_crossings(reward: RewardConfig, vocabularies: Sequence[int]) -> list[Crossing]:
    """At which certainty α · s(r) reaches each of PRIZES."""
    crossings = []
    for definition, vocabulary, (field, prize) in product(DEFINITIONS, vocabularies, PRIZES.items()):
        points: float = getattr(reward, field)
        log_rest = _invert(points / reward.self_certainty_weight, vocabulary, definition)
        gap = rest = None
        if log_rest is not None:
            gap, rest = float(compute_gap(np.array(log_rest), vocabulary)), log_rest / math.log(10)
        crossings.append(Crossing(definition, vocabulary, prize, points, gap, rest))
    return crossings


def _invert(certainty: float, vocabulary: int, definition: SelfCertainty) -> float | None:
    """The log u at which s reaches a value; None where it never does."""
    if certainty >= upper_bound(vocabulary, definition):
        return None
    uniform = math.log((vocabulary - 1) / vocabulary)  # s is 0
    lowest = -2.0 * (certainty + math.log(vocabulary)) - 60.0
    log_rest = brentq(
        lambda log_rest: compute_certainty(log_rest, vocabulary, definition) - certainty, lowest, uniform, xtol=1e-12
    )
    return float(log_rest)
