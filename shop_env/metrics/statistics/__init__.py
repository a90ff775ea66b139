"""Statistics for few users: arithmetic on arrays, without records (paired_tests.py applies it to those).

clustered_errors.py    CR2 standard error and t interval of a figure over users
sign_flips.py         exact test of a paired difference: swap the agents, user by user
several_tests.py      Holm: several metrics tested at once
effective_size.py     intra-class correlation, effective number of steps, smallest difference that could be seen
seeds.py              users, seeds and decoding draws as parts of the variance; intervals pooled over seeds
"""

from shop_env.metrics.statistics.clustered_errors import ClusteredError, clustered_error
from shop_env.metrics.statistics.effective_size import effective_steps, intraclass_correlation, smallest_difference
from shop_env.metrics.statistics.seeds import OverSeeds, VarianceParts, pooled_over_seeds, variance_parts
from shop_env.metrics.statistics.several_tests import holm
from shop_env.metrics.statistics.sign_flips import sign_flip_p_value

__all__ = [
    "ClusteredError",
    "OverSeeds",
    "VarianceParts",
    "clustered_error",
    "effective_steps",
    "holm",
    "intraclass_correlation",
    "pooled_over_seeds",
    "sign_flip_p_value",
    "smallest_difference",
    "variance_parts",
]
