"""Does an agent differ from person to person, and within a person, as people do?

    user_variance.py      how much users differ, and whether it is the right ones: a collapsed agent, a copied person
    variety.py            entropy of what one person does: an over-sharp agent
    session_vectors.py    sessions as counts of what was done
    coverage.py           human sessions that have a simulated one near
    two_sample.py         whether a classifier tells simulated sessions from human ones (needs scikit-learn)
    from_records.py       all of them from the records of a run

Accuracy settles none of this: the best single guess for everyone may be right most often. Each figure says what it is
meant to find, and tests/shop_env/people plants it.
"""

from shop_env.metrics.people.coverage import coverage
from shop_env.metrics.people.from_records import PeopleFigures, people_figures
from shop_env.metrics.people.session_vectors import session_vectors
from shop_env.metrics.people.user_variance import UserVariance, user_agreement, user_variance
from shop_env.metrics.people.variety import entropy_within

__all__ = [
    "PeopleFigures",
    "UserVariance",
    "coverage",
    "entropy_within",
    "people_figures",
    "session_vectors",
    "user_agreement",
    "user_variance",
]
