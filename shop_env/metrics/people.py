"""Differences between people and within one person, of an agent beside those of the log.

Accuracy does not say: the best single guess for everyone may be right most often. From the records of a run, what was
answered beside what was logged, step by step:

| figure | formula | range | source |
|---|---|---|---|
| `user_icc`, `logged_user_icc` | share of the variance of kinds of action between users, answered and logged | below 0 by chance–1 | Donner 1986 |
| `user_icc_ratio` | the first / the second: 0 for one average shopper for all | ≥ 0 but for chance | ours |
| `user_agreement` | correlation over users of what they do: 0 for a copy of another person | about -1–1 | ours |
| `entropy_ratio` | H(kind, given the user) answered / logged: below 1 for an over-sharp agent | ≥ 0 | Miller 1955 |
| `coverage` | share of logged sessions with an answered one within reach of their 5 nearest | 0–1 | Naeem et al. 2020 |

Kinds are types of action, clicks by what is clicked; a reply that cannot be read is a kind of its own. On logged pages
an agent sees what each person's past is: even one that knows nothing of persons then differs between users. Where the
logged ICC is below 0.02 people hardly differ: there is no ratio and no agreement.

`user_icc` is the intra-class correlation of between_users.py, rows being steps and columns 1 for their kind of action.
With `between` of two sides, simulated and human,

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
"""  # noqa: E501 - a table row is a line

from collections.abc import Sequence

import numpy as np
from scipy.spatial.distance import cdist

from replay_sessions.foundation.records import Record
from shop_env.metrics.between_users import variance_components
from shop_env.metrics.choices import MetricChoices
from shop_env.metrics.clustered_errors import Codes, Floats
from shop_env.metrics.populations import ActionTrace, trace_of
from shop_env.metrics.step_record import StepRecord
from shop_env.metrics.step_table import FINE_TYPES, StepTable

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
    ours, theirs = (variance_components(rows, rows, users) for rows in map(_one_hot, (answered, logged)))
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


def session_traces(records: Sequence[StepRecord]) -> tuple[list[ActionTrace], list[ActionTrace]]:
    """Sessions as kinds of action, logged and answered; no pair spans a step that was not answered."""
    table = StepTable(records, MetricChoices())
    sessions: dict[str, list[int]] = {}
    for index, record in enumerate(table.records):
        sessions.setdefault(record.session_id, []).append(index)
    logged: list[ActionTrace] = []
    answered: list[ActionTrace] = []
    for indices in sessions.values():
        steps = [table.records[index].step_index for index in indices]
        breaks = [at for at in range(1, len(steps)) if steps[at] != steps[at - 1] + 1]
        for traces, codes in ((logged, table.logged_fine), (answered, table.predicted_fine)):
            traces.append(trace_of([KIND_NAMES[codes[index]] for index in indices], breaks=breaks))
    return logged, answered


def _one_hot(kinds: Codes) -> Floats:
    return np.eye(KINDS)[kinds]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
