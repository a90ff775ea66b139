"""Does an agent differ from person to person, and within a person, as people do?

Accuracy does not say: the best single guess for everyone may be right most often. From the records of a run, what was
answered beside what was logged, step by step:

| figure | formula | range | source |
|---|---|---|---|
| `user_icc`, `logged_user_icc` | share of the variance of kinds of action that lies between users, answered and logged | below 0 by chance–1 | Donner 1986 |
| `user_icc_ratio` | the first / the second: 0 for one average shopper for all | ≥ 0 but for chance | of this project |
| `user_agreement` | correlation over users of what they do, answered and logged: 0 for a copy of another person | about -1–1 | of this project |
| `entropy_ratio` | H(kind, given the user) answered / logged: below 1 for an over-sharp agent | ≥ 0 | Miller 1955 |
| `coverage` | share of logged sessions that have an answered one within reach of their 5 nearest | 0–1 | Naeem et al. 2020 |

Kinds are types of action, clicks by what is clicked; a reply that cannot be read is a kind of its own. On logged pages
an agent sees what each person's past is: even one that knows nothing of persons then differs between users. Where the
logged ICC is below 0.02 people hardly differ: there is no ratio and no agreement.

How much users differ in what they do, and whether a simulated user differs in the way of the one it stands for.

Rows are steps (or sessions), columns what they are described by (1 for the kind of action, 0 for all others). A one-way
analysis of variance by user, summed over the columns:

    between = (MSB - MSW) / n₀        within = MSW        ICC = between / (between + within)

(Donner 1986; n₀ as in shop_env/metrics/statistics.py). With products of two sides' deviations in place
of squares, `between` is the covariance of simulated and human users, free of what the steps of one user have in common
otherwise, and

    user_agreement = between(simulated, human) / √(between(simulated) · between(human))

is the correlation of the two over users. An agent that is one average shopper for all has an ICC of 0. One that plays
each user as another has the ICC of people and an agreement of 0. Where an agent hardly distinguishes users (its between
is less than a tenth of people's) nothing could agree, and where people hardly differ (an ICC below 0.02) there is
nothing to compare with: no figure.

How varied what one person does is: the entropy of kinds of action within a user, in bits,

    H(kind | user) = Σ_u (n_u / N) · (Σ_k -p_uk log2 p_uk + (K_u - 1) / (2 n_u ln 2))

p_uk user u's shares of the K_u kinds that it shows; the last term makes up for most of what few steps hide (Miller
1955). Range 0 to log2 of the number of kinds, a little more where the correction overshoots. An over-sharp agent, which
always does what its person does most often, has less than people; one average shopper for all has more.

Sessions as counts: how often each kind of action was done, and how often each after each.

Two sessions are as far apart as these counts differ in all (L1): 1 for another kind at the end of a session, and 1 for
the pair that it makes.

    coverage = share of human sessions whose ball, out to the k-th nearest other human session, holds a simulated one

(Naeem et al. 2020, k = 5; range 0–1). As many sessions of the same people drawn anew reach about 1 - 2^-k = 0.97. Ways
that are never simulated pull it down, however well the others are met; a copy of any people's sessions does not.

How people shop, as shares that any sessions have: those of a log, answered ones, free-running ones.

| figure | formula | range | source |
|---|---|---|---|
| `filter_use` | share of sessions with a click on a filter | 0–1 | Lu et al. 2025: agents overuse filters |
| `reformulation_rate` | share of searches that change the search before them in the session | 0–1 | Lu et al. 2025: agents do not try again |
| `back_rate` | share of clicks on an element that leads back, by its name | 0–1 | of this project |
| `cart_removals` | share of sessions in which something is taken out of the cart, by the element's name | 0–1 | of this project |
| `mean_clicked_rank` | mean place, among the page's products, of the product that is clicked | ≥ 1 | Joachims et al. 2005 |

The rank-click curve is the share of product clicks on each place. What a log does not hold (pages without products, a
browser's own back button) is not counted; a figure without anything to count is None. Compared by their differences, and
ranks by the Wasserstein-1 distance of what was clicked.
"""  # noqa: E501 - a table row is a line

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from scipy.spatial.distance import cdist

from replay_sessions.elements import find_elements
from replay_sessions.foundation.records import Record
from shop_env.metrics.populations import ActionTrace, trace_of
from shop_env.metrics.statistics import Codes, Floats, user_variance, variance_components
from shop_env.metrics.step_table import FINE_TYPES, MetricChoices, StepRecord, StepTable
from shop_env.reward.similarity import click_type_of

USERS_DIFFER = 0.1
PEOPLE_DIFFER = 0.02


def user_agreement(simulated: Floats, human: Floats, users: Codes) -> float | None:
    """The correlation over users of what they do, simulated and human, on the same rows.

    None where the agent hardly distinguishes users, people hardly differ, or it cannot be computed.
    """
    together, agent, people = (
        variance_components(left, right, users)
        for left, right in ((simulated, human), (simulated, simulated), (human, human))
    )
    if together is None or agent is None or people is None:
        return None
    if not people.correlation >= PEOPLE_DIFFER or agent.between < USERS_DIFFER * people.between:
        return None
    return together.between / float(np.sqrt(agent.between * people.between))


def entropy_within(kinds: Codes, users: Codes) -> float:
    """The entropy of kinds within a user, in bits; NaN without a step.

    >>> round(entropy_within(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])), 3)  # 1 bit, and 1 / (4 ln 2)
    1.361
    """
    if not len(kinds):
        return float("nan")
    bits = 0.0
    for user in np.unique(users):
        counts = np.unique(kinds[users == user], return_counts=True)[1]
        shares = counts / counts.sum()
        bits += counts.sum() * float(-np.sum(shares * np.log2(shares))) + (len(counts) - 1) / (2 * np.log(2))
    return float(bits / len(kinds))


NEIGHBOURS = 5


def session_vectors(kinds: Codes, sessions: Codes, count: int) -> Floats:
    """One row of counts for each session, in the order of first appearance; columns are kinds, then pairs.

    Args:
        kinds: Of each step, from 0 to `count` - 1.
        sessions: Whose each step is; its steps in their order.

    >>> session_vectors(np.array([0, 1, 1]), np.array([7, 7, 7]), 2).tolist()
    [[1.0, 2.0, 0.0, 1.0, 0.0, 1.0]]
    """
    numbers = {session: number for number, session in enumerate(dict.fromkeys(sessions.tolist()))}
    rows = np.zeros((len(numbers), count + count**2))
    last: dict[int, int] = {}
    for kind, session in zip(kinds.tolist(), sessions.tolist(), strict=True):
        own = rows[numbers[session]]
        own[kind] += 1
        if session in last:
            own[count + last[session] * count + kind] += 1
        last[session] = kind
    return rows


def coverage(human: Floats, simulated: Floats, neighbours: int = NEIGHBOURS) -> float:
    """The share of human sessions that are covered, from session_vectors; NaN with no more than k of them.

    >>> human = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> coverage(human, np.array([[0.5]]), neighbours=1)  # 0, 1 and 2 have a neighbour 1 away, 9 one 7 away
    0.5
    """
    if len(human) <= neighbours or not len(simulated):
        return float("nan")
    among = np.sort(cdist(human, human, "cityblock"), axis=1)
    nearest = cdist(human, simulated, "cityblock").min(axis=1)
    return float(np.mean(nearest <= among[:, neighbours]))  # the first of each row is the session itself


KIND_NAMES = (*FINE_TYPES, "invalid")
KINDS = len(KIND_NAMES)


class PeopleFigures(Record):
    """The figures at the head of this module; None where there is nothing that they could stand on."""

    user_icc: float | None
    logged_user_icc: float | None
    user_icc_ratio: float | None
    user_agreement: float | None
    entropy_ratio: float | None
    coverage: float | None


def people_figures(records: Sequence[StepRecord]) -> PeopleFigures:
    """The figures of a run; steps without a reply are left out on both sides."""
    table = StepTable(records, MetricChoices())
    answered, logged = table.predicted_fine, table.logged_fine
    users, _ = table.clusters("user")
    sessions, _ = table.clusters("session")
    ours, theirs = (user_variance(_one_hot(kinds), users) for kinds in (answered, logged))
    icc, logged_icc = (None if parts is None else _known(parts.correlation) for parts in (ours, theirs))
    varied, people_s = (entropy_within(kinds, users) for kinds in (answered, logged))
    vectors = [session_vectors(kinds, sessions, KINDS) for kinds in (logged, answered)]
    return PeopleFigures(
        user_icc=icc,
        logged_user_icc=logged_icc,
        user_icc_ratio=None if icc is None or logged_icc is None or logged_icc < PEOPLE_DIFFER else icc / logged_icc,
        user_agreement=user_agreement(_one_hot(answered), _one_hot(logged), users),
        entropy_ratio=varied / people_s if people_s > 0 else None,
        coverage=_known(coverage(vectors[0], vectors[1])),
    )


TracesByUser = dict[str, list[ActionTrace]]


def traces_by_user(records: Sequence[StepRecord]) -> tuple[TracesByUser, TracesByUser]:
    """Each user's sessions as kinds of action, logged and answered; no pair spans a step that was not answered."""
    table = StepTable(records, MetricChoices())
    sessions: dict[tuple[str, str], list[int]] = {}
    for index, record in enumerate(table.records):
        sessions.setdefault((record.user_id, record.session_id), []).append(index)
    sides: tuple[TracesByUser, TracesByUser] = ({}, {})
    for (user, _), indices in sessions.items():
        steps = [table.records[index].step_index for index in indices]
        breaks = [at for at in range(1, len(steps)) if steps[at] != steps[at - 1] + 1]
        for side, codes in zip(sides, (table.logged_fine, table.predicted_fine), strict=True):
            trace = trace_of([KIND_NAMES[codes[index]] for index in indices], breaks=breaks)
            side.setdefault(user, []).append(trace)
    return sides


def _one_hot(kinds: Codes) -> Floats:
    return np.eye(KINDS)[kinds]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


Doing = Mapping[str, str] | None  # an action as a reply carries it; None: nothing that could be read
LEADS_BACK = ("back", "previous", "return_to")
TAKES_OUT = ("remove", "delete")


class StylisedFacts(Record):
    """The figures at the head of this module."""

    filter_use: float | None
    reformulation_rate: float | None
    back_rate: float | None
    cart_removals: float | None
    mean_clicked_rank: float | None


def facts_of_sessions(sessions: Sequence[Sequence[Doing]], ranks: Sequence[int] = ()) -> StylisedFacts:
    """The facts of sessions, each a sequence of actions.

    Args:
        ranks: Of each product that was clicked (product_ranks).
    """
    clicks = [[action["name"] for action in of if action and action["type"] == "click"] for of in sessions]
    searches = [[action["text"] for action in of if action and action["type"] == "type_and_submit"] for of in sessions]
    changed = sum(_folded(search) != _folded(other) for of in searches for search, other in pairwise(of))
    names = [name for of in clicks for name in of]
    return StylisedFacts(
        filter_use=_share(sum(any(click_type_of(name) == "filter" for name in of) for of in clicks), len(sessions)),
        reformulation_rate=_share(changed, sum(map(len, searches))),
        back_rate=_share(sum(_last_part(name).startswith(LEADS_BACK) for name in names), len(names)),
        cart_removals=_share(
            sum(any(_last_part(name).startswith(TAKES_OUT) for name in of) for of in clicks), len(sessions)
        ),
        mean_clicked_rank=sum(ranks) / len(ranks) if ranks else None,
    )


def product_ranks(page: str) -> dict[str, int]:
    """The place of each link to a product among the products of the page, 1 for the first.

    >>> product_ranks('<a name="results.cup.view_product">cup</a><a name="results.pan.view_product">pan</a>')
    {'results.cup.view_product': 1, 'results.pan.view_product': 2}
    """
    links = [element.name for element in find_elements(page) if click_type_of(element.name) == "product_link"]
    ranks_of = {product: rank for rank, product in enumerate(dict.fromkeys(map(_product, links)), start=1)}
    return {link: ranks_of[_product(link)] for link in links}


def rank_click_curve(ranks: Sequence[int], positions: int = 10) -> list[float]:
    """The share of product clicks on each of the first places."""
    counts = Counter(ranks)
    return [counts[rank] / len(ranks) if ranks else 0.0 for rank in range(1, positions + 1)]


def _product(link: str) -> str:
    """A product's image and title are two links of one product."""
    return link.rpartition(".")[0]


def _last_part(name: str) -> str:
    return name.lower().rpartition(".")[2]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _share(count: int, of: int) -> float | None:
    return count / of if of else None
