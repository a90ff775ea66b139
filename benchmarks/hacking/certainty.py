"""What self-certainty alone can pay: α · s(r) of distributions that are ever more certain, exactly.

One token has the probability 1 - u and all others share u alike, which is p ∝ exp(c · z) with z = 1 for one token, 0 for
the others and c = log((1 - u)(V - 1) / u). Then, for a rationale all of whose tokens are so,

    kl_uniform_policy   -log V - (log(1 - u) + (V - 1) log(u / (V - 1))) / V      grows with c without end, about c less log V
    kl_policy_uniform   log V + (1 - u) log(1 - u) + u log(u / (V - 1))           at most log V
    eq3                 the same / V                                              at most log V / V

The first counts every token alike, the improbable ones as much as the one that is said, so it is paid for pushing down
what would never be sampled anyway: the text stays as it is, and so does KL(π ‖ π_ref), which counts only what is
sampled. Computed from log u, since 1 - u is soon 1 in any floating point.
"""  # noqa: E501 - a formula is a line

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from shop_env.reward import RewardConfig
from shop_env.reward.score import SelfCertainty

__all__ = ["DEFINITIONS", "PRIZES", "Crossing", "certainty", "crossings", "gap_of", "most", "prizes"]

DEFINITIONS: tuple[SelfCertainty, ...] = ("kl_uniform_policy", "kl_policy_uniform", "eq3")
PRIZES = {"click_name_present": "name present", "action_type": "type of action", "format": "format"}
SURE = (1e-1, 1e-3, 1e-6, 1e-12)  # what is left for the other tokens, where nothing more is asked
Floats = NDArray[np.float64]


class Crossing(msgspec.Struct, frozen=True, kw_only=True):
    """When α · s(r) is as much as another part of the reward.

    Attributes:
        prize: The part (PRIZES), worth `points`.
        gap: The logit of the one token above the others from which on it is; None: never.
        rest: log10 of the probability that the others share then.
    """

    definition: str
    vocabulary: int
    prize: str
    points: float
    gap: float | None
    rest: float | None


def certainty(log_rest: Floats, vocabulary: int, definition: SelfCertainty) -> Floats:
    """s of a token whose alternatives share exp(log_rest), (N,) -> (N,).

    >>> certainty(np.log([0.5]), 2, "kl_policy_uniform").round(12).tolist()
    [0.0]
    """
    rest = np.exp(log_rest)
    log_peak, log_other = np.log1p(-rest), log_rest - math.log(vocabulary - 1)
    log_v = math.log(vocabulary)
    if definition == "kl_uniform_policy":
        return -log_v - (log_peak + (vocabulary - 1) * log_other) / vocabulary
    divergence = log_v + (1 - rest) * log_peak + rest * log_other
    return divergence if definition == "kl_policy_uniform" else divergence / vocabulary


def gap_of(log_rest: Floats, vocabulary: int) -> Floats:
    """c: how far the logit of the one token lies above the others'."""
    found: Floats = np.log1p(-np.exp(log_rest)) - (log_rest - math.log(vocabulary - 1))
    return found


def most(vocabulary: int, definition: SelfCertainty) -> float:
    """The least upper bound of s."""
    bounds = {"kl_policy_uniform": math.log(vocabulary), "eq3": math.log(vocabulary) / vocabulary}
    return bounds.get(definition, math.inf)


def prizes(reward: RewardConfig) -> dict[str, float]:
    """Other parts of the reward, by their names."""
    return {said: getattr(reward, field) for field, said in PRIZES.items()}


def crossings(reward: RewardConfig, vocabularies: Sequence[int]) -> list[Crossing]:
    """From which certainty on α · s(r) is as much as each of `prizes`."""
    found = []
    for definition in DEFINITIONS:
        for vocabulary in vocabularies:
            for prize, points in prizes(reward).items():
                log_rest = _reached(points / reward.self_certainty_weight, vocabulary, definition)
                known = None if log_rest is None else np.array([log_rest])
                found.append(
                    Crossing(
                        definition=definition,
                        vocabulary=vocabulary,
                        prize=prize,
                        points=points,
                        gap=None if known is None else float(gap_of(known, vocabulary)[0]),
                        rest=None if log_rest is None else log_rest / math.log(10),
                    )
                )
    return found


def _reached(wanted: float, vocabulary: int, definition: SelfCertainty) -> float | None:
    """log u at which s is `wanted`; None where it never is."""
    if wanted >= most(vocabulary, definition):
        return None
    even = math.log((vocabulary - 1) / vocabulary)  # all tokens alike: s is 0
    lowest = -2.0 * (wanted + math.log(vocabulary)) - 60.0

    def above(log_rest: float) -> float:
        return float(certainty(np.array([log_rest]), vocabulary, definition)[0]) - wanted

    return float(brentq(above, lowest, even, xtol=1e-12))
