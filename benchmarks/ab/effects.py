"""Computes the effects of a variant, as mean differences of paired visits, and compares predictions with them.

    visits to B minus the same visits to A ─► mean, CR2 error over users, t interval ─► Effect
    a predicted Effect and the true Effect ─► Prediction: direction, error, coverage, false alarm

The true effect has an interval too, because it is measured on visits of the known shoppers. A predicted interval covers
it if the two differ by at most √(predicted margin² + true margin²).

More visits reduce the sampling error of the visits. The error of the fit remains, because other logs give another
agent. The interval of an agent with refits (a bootstrap over the users of its logs) includes both. Refits make no
visits. Let l_v be the log-likelihood of visit v under a refit minus that under the agent. To first order, the mean
outcome of the refit differs from the agent's by

    mean over v of (outcome_v - mean outcome) · l_v

The variance of the fit is the variance of the effects over refits, minus what the sampling of visits adds to it. The
interval extends √(t(df)²·SE² + t(refits - 1)²·fit²) to either side.
"""

import math

from benchmarks.ab.walks import Outcomes
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Estimate
from shop_env.metrics.clustered_errors import ClusteredError, Codes, Floats, mean_error, t_interval

MEASURES = {"bought": "purchase rate", "steps": "steps a visit", "dollars": "dollars a visit"}


class Effect(Record):
    """A mean difference, B minus A.

    Attributes:
        low, high: Ends of the 95% interval; equal to the difference if it is not subject to chance.
        standard_error: Standard error of the difference over users.
        fit_error: Standard error that comes from the agent's fit; more visits do not lower it.
        visits: Number of pairs of visits.
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
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    @property
    def sign(self) -> int:
        """1 or -1 if the whole interval is above or below 0, else 0."""
        return (self.low > 0) - (self.high < 0)

    def estimate(self, scale: float = 1) -> Estimate:
        """Returns the difference times `scale`, with its interval if it is subject to chance."""
        ends = (scale * self.low, scale * self.high) if self.low < self.high else ()
        return Estimate(scale * self.difference, *ends)


class Prediction(Record):
    """An agent's predicted effect, compared with the true effect.

    Attributes:
        effect: The predicted effect.
        error: The predicted difference minus the true difference.
        right_direction: Whether the signs agree; a predicted difference of 0 has the wrong direction. None if the true
            effect is not significant.
        covered: Whether the predicted interval covers the true effect, within the uncertainty of both.
        alarm: Whether the predicted interval excludes 0.
    """

    effect: Effect
    error: float
    right_direction: bool | None
    covered: bool
    alarm: bool


def effect_of(before: Outcomes, after: Outcomes, name: str) -> Effect:
    """Returns the effect on a measure, over the pairs of visits in which neither visit failed.

    Args:
        before: Visits to A.
        after: Visits of the same shoppers to B.
        name: A key of MEASURES.

    Raises:
        BadConfig: The visits are not of the same shoppers, or no pair is left.
    """
    if [visit.user_id for visit in before.visits] != [visit.user_id for visit in after.visits]:
        raise BadConfig("the visits to A and to B are not of the same shoppers: move them away, and walk again.")
    compared = ~(before.failed | after.failed)
    if not compared.any():
        raise BadConfig("no visit is left of which both ends are known.")
    users = before.users[compared]
    sides = [(outcomes.measure(name)[compared], outcomes.log_ratios[compared]) for outcomes in (before, after)]
    lost, gained = ((value - value.mean())[:, None] * ratios for value, ratios in sides)
    refits = lost.shape[1]
    fit = ClusteredError(_fit_error(gained - lost, users), refits - 1, refits) if refits > 1 else None
    return paired_effect(sides[0][0], sides[1][0], users, fit)


def _fit_error(gains: Floats, users: Codes) -> float:
    """Returns the standard deviation of the mean gain over refits, without the share due to the sampling of visits.

    Args:
        gains: Contribution of each visit to the difference between each refit's effect and the agent's,
            (visits, refits).
    """
    gains = gains - gains.mean(axis=1, keepdims=True)
    squares = [gain.mean() ** 2 - mean_error(gain, users).standard_error ** 2 for gain in gains.T]
    return math.sqrt(max(0.0, sum(squares) / (len(squares) - 1)))


def paired_effect(before: Floats, after: Floats, users: Codes, fit: ClusteredError | None = None) -> Effect:
    """Returns the mean of `after - before` with its interval over users.

    Args:
        before: Values in A, (visits,).
        after: Values in B, (visits,).
        users: The user of each pair as a number, (visits,).
        fit: The error that comes from the agent's fit. If None, the interval does not include it.
    """
    differences = after - before
    mean, error = float(differences.mean()), mean_error(differences, users)
    margins = [mean - t_interval(mean, part)[0] for part in (error, fit) if part and part.standard_error]
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
