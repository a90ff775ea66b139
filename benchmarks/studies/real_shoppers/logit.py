"""Conditional logit with clustered errors: what choices, or an agent's probabilities, owe to facts of what was offered.

    P(a | offers) = exp(w · x(a)) / Σ_b exp(w · x(b))

The same w is fitted to people's choices (shares 0 and 1) and to the probabilities of an agent at the same choices: the
w that is nearest by cross-entropy, which for people is maximum likelihood (D. McFadden, 1974; for shares L. Papke and
J. Wooldridge, 1996). What each choice adds to w's deviation is its score times the inverse Hessian, so the difference
of two fits on the same choices is a paired one (shop_env/metrics/statistics.py).
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, diags

from shop_env.metrics.statistics import ClusteredError, Codes, Floats, cluster_sums, clustered_error

RIDGE = 1e-3  # beside a sum over thousands of choices: keeps what nobody chose, and what is not identified, finite
MOST_ITERATIONS = 50
TOLERANCE = 1e-8


class LogitFit(NamedTuple):
    """Weights, (facts,), and what each choice adds to their deviation, (choices, facts)."""

    weights: Floats
    influences: Floats


def fit_logit(facts: csr_matrix, starts: Codes, shares: Floats) -> LogitFit:
    """Fits a conditional logit by Newton's method.

    Args:
        facts: Of every offer, the offers of one choice after another, (offers, facts).
        starts: The first offer of each choice, (choices,).
        shares: Of every offer, summing to 1 over those of a choice, (offers,).
    """
    sizes = np.diff([*starts, facts.shape[0]])
    choice = np.repeat(np.arange(len(starts)), sizes)
    by_choice = csr_matrix((np.ones(len(choice)), (choice, np.arange(len(choice)))))
    weights = np.zeros(facts.shape[1])
    for _ in range(MOST_ITERATIONS):
        scores = facts @ weights
        powers = np.exp(scores - np.maximum.reduceat(scores, starts)[choice])
        fitted = powers / np.add.reduceat(powers, starts)[choice]
        means = (by_choice @ diags(fitted) @ facts).toarray()
        hessian = (facts.T @ diags(fitted) @ facts).toarray() - means.T @ means + RIDGE * np.eye(len(weights))
        step = np.linalg.solve(hessian, facts.T @ (shares - fitted) - RIDGE * weights)
        weights = weights + step
        if np.abs(step).max() < TOLERANCE:
            break
    scores_of_choices = (by_choice @ diags(shares - fitted) @ facts).toarray()
    return LogitFit(weights, np.linalg.solve(hessian, scores_of_choices.T).T)


def error_of(influences: Floats, clusters: Codes) -> ClusteredError | None:
    """The error of a figure with these influences, (steps,), and their clusters, (steps,)."""
    sums = cluster_sums(influences[:, None], clusters)[:, 0]
    return clustered_error(sums, np.bincount(clusters) / len(clusters))
