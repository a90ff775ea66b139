"""Does an agent differ from person to person, and within a person, as people do?

    from_records.py       how much users differ, and whether it is the right ones; how varied one person is; human
                          sessions that have a simulated one near; all of them from the records of a run
    two_sample.py         whether a classifier tells simulated sessions from human ones (needs scikit-learn)
    stylised_facts.py     use of filters, searches tried again, ways back, ranks of what is clicked
    ../populations.py     distances of populations between a floor (other people) and a base (chance)
    ../action_likelihood.py   whether a person is recognised by how likely its actions are as itself

Accuracy settles none of this: the best single guess for everyone may be right most often. Each figure says what it is
meant to find, and tests/shop_env/people plants it.
"""

from shop_env.metrics.people.from_records import (
    PeopleFigures,
    coverage,
    entropy_within,
    people_figures,
    session_vectors,
    user_agreement,
)
from shop_env.metrics.people.stylised_facts import StylisedFacts, facts_of_sessions, product_ranks, rank_click_curve
from shop_env.metrics.populations import ScaledDistance, independent_traces, scaled_distance
from shop_env.metrics.statistics import UserVariance, user_variance

__all__ = [
    "PeopleFigures",
    "ScaledDistance",
    "StylisedFacts",
    "UserVariance",
    "coverage",
    "entropy_within",
    "facts_of_sessions",
    "independent_traces",
    "people_figures",
    "product_ranks",
    "rank_click_curve",
    "scaled_distance",
    "session_vectors",
    "user_agreement",
    "user_variance",
]
