"""Statistics for few users: arithmetic on arrays, without records (shop_env/metrics/intervals.py applies it to those).

clustered_errors.py   CR2 standard error over users: the interval and the t test; Holm for several metrics
effective_size.py     intra-class correlation, effective number of steps, smallest detectable difference
seeds.py              users, seeds and decoding draws as parts of the variance; intervals pooled over seeds
"""

from shop_env.metrics.statistics.clustered_errors import (
    MIN_CLUSTERS,
    ClusteredError,
    clustered_error,
    estimate,
    holm,
    p_value,
)
from shop_env.metrics.statistics.effective_size import effective_steps, intraclass_correlation, smallest_difference
from shop_env.metrics.statistics.seeds import OverSeeds, VarianceParts, pooled_over_seeds, variance_parts

__all__ = [
    "MIN_CLUSTERS",
    "ClusteredError",
    "OverSeeds",
    "VarianceParts",
    "clustered_error",
    "effective_steps",
    "estimate",
    "holm",
    "intraclass_correlation",
    "p_value",
    "pooled_over_seeds",
    "smallest_difference",
    "variance_parts",
]
