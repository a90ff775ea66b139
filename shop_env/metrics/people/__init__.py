"""Does an agent differ from person to person, and within a person, as people do?

    between_users.py      how much users differ, and whether it is the right ones: a collapsed agent, a copied person
    variety.py            entropy of what one person does: an over-sharp agent
    session_counts.py     sessions as counts of what was done
    covered_sessions.py   human sessions that have a simulated one near
    two_sample.py         whether a classifier tells simulated sessions from human ones (needs scikit-learn)
    from_records.py       all of them from the records of a run
    scaled_distances.py   distances of populations between a floor (other people) and a base (chance)
    stylised_facts.py     use of filters, searches tried again, ways back, ranks of what is clicked

Accuracy settles none of this: the best single guess for everyone may be right most often. Each figure says what it is
meant to find, and tests/shop_env/people plants it.
"""

from shop_env.metrics.people.between_users import UserVariance, user_agreement, user_variance
from shop_env.metrics.people.covered_sessions import coverage
from shop_env.metrics.people.from_records import PeopleFigures, people_figures
from shop_env.metrics.people.scaled_distances import ScaledDistance, independent_traces, scaled_distance
from shop_env.metrics.people.session_counts import session_vectors
from shop_env.metrics.people.stylised_facts import StylisedFacts, facts_of_sessions, product_ranks, rank_click_curve
from shop_env.metrics.people.variety import entropy_within

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
