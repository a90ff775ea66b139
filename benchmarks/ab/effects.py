"""Effects of a variant: mean differences of pairs of visits, with intervals over users; how right predictions are.

    visits to B minus the same visits to A ─► mean, CR2 error over users, t interval ─► Effect
    a predicted Effect and the true one    ─► Prediction: direction, error, coverage, false alarm

The true effect has an interval too: it is measured on many visits of the known shoppers. A predicted interval holds it
where the two differ by no more than √(predicted margin² + true margin²).

More visits make the walks' error small; that of the fit remains, for other logs give another agent. An agent with
refits (a bootstrap over the users of its logs) has both. A refit does not walk: with l_v the log-likelihood of visit v
by the refit minus that by the agent, its mean outcome differs from the agent's, to first order, by

    mean over v of (outcome_v - mean outcome) · l_v

The fit's variance is that of the effects' differences over refits, minus what the walks' sampling adds to it. The
interval reaches √(t(df)²·SE² + t(refits - 1)²·fit²) to either side.
"""

import math

import numpy as np

from benchmarks.ab.walks import Outcomes
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Estimate
from shop_env.metrics.clustered_errors import ClusteredError, Codes, Floats, clustered_error, t_interval

MEASURES = {"bought": "purchase rate", "steps": "steps a visit", "dollars": "dollars a visit"}


class Effect(Record):
    """A mean difference, B minus A.

    Attributes:
        low, high: 95%; the difference itself where no chance is in it.
        standard_error: Over users.
        fit_error: The standard error that comes from the agent's fit, which more visits do not lower.
        visits: Pairs that it is the mean of.
        before: The mean in A.
    """

    difference: float
    low: float
    high: float
    standard_error: float
    visits: int
    before: float
    fit_error: float = 0.0

    @property
    def margin(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies above or below 0, else 0."""
        return (self.low > 0) - (self.high < 0)

    def estimate(self, scale: float = 1) -> Estimate:
        """The difference in another unit, with its interval where chance is in it."""
        ends = (scale * self.low, scale * self.high) if self.low < self.high else ()
        return Estimate(scale * self.difference, *ends)


class Prediction(Record):
    """An agent's answer beside the true one.

    Attributes:
        right_direction: None where the true effect is not significant; to predict none is no direction.
        covered: Whether the predicted interval holds the true effect, as far as that is known.
        alarm: The predicted interval excludes 0.
    """

    effect: Effect
    error: float
    right_direction: bool | None
    covered: bool
    alarm: bool


def effect_of(before: Outcomes, after: Outcomes, name: str) -> Effect:
    """The effect on a measure, of the visits of which both ends are known.

    Raises:
        BadConfig: The two are not of the same visits, or none is left.
    """
    if [visit.user_id for visit in before.visits] != [visit.user_id for visit in after.visits]:
        raise BadConfig("the visits to A and to B are not of the same shoppers: move them away, and walk again.")
    compared = ~(before.failed | after.failed)
    if not compared.any():
        raise BadConfig("no visit is left of which both ends are known.")
    users = before.users[compared]
    sides = [(own.measure(name)[compared], own.log_ratios[compared]) for own in (before, after)]
    lost, gained = ((value - value.mean())[:, None] * ratios for value, ratios in sides)
    refits = lost.shape[1]
    fit = ClusteredError(_fit_error(gained - lost, users), refits - 1, refits) if refits > 1 else None
    return paired_effect(sides[0][0], sides[1][0], users, fit)


def _fit_error(gains: Floats, users: Codes) -> float:
    """The standard deviation over refits of the mean gain, without what the sampling of visits adds to it.

    Args:
        gains: What each visit adds to how far each refit's effect is from the agent's, (visits, refits).
    """
    gains = gains - gains.mean(axis=1, keepdims=True)
    squares = [gain.mean() ** 2 - difference_error(gain, users).standard_error ** 2 for gain in gains.T]
    return math.sqrt(max(0.0, sum(squares) / (len(squares) - 1)))


def paired_effect(before: Floats, after: Floats, users: Codes, fit: ClusteredError | None = None) -> Effect:
    """The mean of after - before with its interval over users.

    Args:
        fit: The error that comes from the fit.
    """
    differences = after - before
    mean, error = float(differences.mean()), difference_error(differences, users)
    margins = [mean - t_interval(mean, own)[0] for own in (error, fit) if own and own.standard_error]
    low, high = mean - math.hypot(*margins), mean + math.hypot(*margins)
    return Effect(
        difference=mean,
        low=low,
        high=high,
        standard_error=error.standard_error,
        visits=len(differences),
        before=float(before.mean()),
        fit_error=fit.standard_error if fit else 0.0,
    )


def difference_error(differences: Floats, users: Codes) -> ClusteredError:
    """The CR2 error of a mean difference over users; infinite where one user has all of them."""
    codes = np.unique(users, return_inverse=True)[1]
    influences = np.bincount(codes, weights=differences - differences.mean())
    error = clustered_error(influences / len(users), np.bincount(codes) / len(users))
    return error or ClusteredError(math.inf, 1.0, 1)


def prediction(effect: Effect, true: Effect) -> Prediction:
    """Compares a predicted effect with the true one."""
    error = effect.difference - true.difference
    return Prediction(
        effect=effect,
        error=error,
        right_direction=None if true.sign == 0 else effect.difference * true.sign > 0,
        covered=abs(error) <= math.hypot(effect.margin, true.margin),
        alarm=effect.sign != 0,
    )
