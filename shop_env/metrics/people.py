"""Compares an agent's differences between users, and within a user, with those of the log.

Accuracy does not show them: the same best guess for everyone may be right most often. From the answered and the logged
action of each step of a run:

| metric | formula | range | source |
|---|---|---|---|
| `action_mix_divergence` | Jensen-Shannon divergence, base 2, of the shares of each kind of action | 0–1 | Lin 1991 |
| `transition_divergence` | the same of the shares of each pair (kind, next kind) | 0–1 | Lin 1991 |
| `user_icc`, `logged_user_icc` | share of the variance of kinds of action between users, answered and logged | below 0 by chance–1 | Donner 1986 |
| `user_icc_ratio` | the first / the second: 0 for one average shopper for all | ≥ 0 but for chance | ours |
| `user_agreement` | correlation over users of what they do: 0 for a copy of another person | about -1–1 | ours |
| `entropy_ratio` | H(kind, given the user) answered / logged: below 1 for an over-sharp agent | ≥ 0 | Miller 1955 |
| `coverage` | share of logged sessions with an answered one within reach of their 5 nearest | 0–1 | Naeem et al. 2020 |

Kinds are types of action, and the kinds of click; a malformed reply is another kind. On logged pages an agent sees each
user's past, so even an agent without a persona differs between users. If the logged ICC is below 0.02, people hardly
differ, and the ratio and the agreement are None.

`user_icc` is the intra-class correlation of between_users.py, rows being steps and columns 1 for their kind of action.
With `between` of two sides, simulated and human,

    user_agreement = between(simulated, human) / √(between(simulated) · between(human))

is the correlation of the two over users. An agent that acts as one average shopper for all users has an ICC of 0. An
agent that plays each user as another one has the ICC of people and an agreement of 0. The agreement is None if the agent
hardly distinguishes users (its between is less than a tenth of people's) or people hardly differ (an ICC below 0.02).

A pair is two successive actions of a session without a step between them that was not answered or is not scored.

The variety of a user's actions is the entropy of kinds of action within a user, in bits,

    H(kind | user) = Σ_u (n_u / N) · (Σ_k -p_uk log2 p_uk + (K_u - 1) / (2 n_u ln 2))

where p_uk are user u's shares of the K_u kinds that occur; the last term corrects most of the bias of few steps (Miller
1955). It ranges from 0 to log2 of the number of kinds, or a little more if the correction overshoots. An over-sharp
agent, which always does what its user does most often, has less than people; one average shopper for all has more.

A session is represented by counts: of each kind of action, and of each pair of successive kinds. The distance of two
sessions is the sum of the differences of these counts (L1): one more action at the end of a session adds 1 for its kind
and 1 for its pair.

    coverage = share of human sessions whose ball, out to the k-th nearest other human session, holds a simulated one

(Naeem et al. 2020, k = 5; range 0–1). As many new sessions of the same people reach about 1 - 2^-k = 0.97. Behaviour
that is never simulated lowers it, however well the rest is covered; a copy of any people's sessions does not.
"""  # noqa: E501 - a table row is a line

from collections.abc import Sequence

import numpy as np
from scipy.spatial.distance import cdist, jensenshannon

from replay_sessions.foundation.records import Record
from shop_env.metrics.between_users import variance_components
from shop_env.metrics.clustered_errors import Codes, Floats
from shop_env.metrics.presets import MetricChoices
from shop_env.metrics.step_record import StepRecord
from shop_env.metrics.step_table import FINE_TYPES, StepTable

USERS_DIFFER = 0.1
PEOPLE_DIFFER = 0.02


def user_agreement(simulated: Floats, human: Floats, users: Codes) -> float | None:
    """Computes the correlation over users of simulated and human actions on the same rows.

    Args:
        simulated, human: The kind of action of each step, one-hot, shape (steps, kinds).
        users: The user of each step, shape (steps,).

    Returns:
        The correlation; None if the agent hardly distinguishes users, people hardly differ, or it cannot be computed.
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
    """Computes the entropy of kinds within a user, in bits; NaN without a step.

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


def session_vectors(kinds: Codes, sessions: Codes, count: int, steps: Codes | None = None) -> Floats:
    """Counts the kinds and pairs of kinds of each session.

    Args:
        kinds: The kind of each step, from 0 to `count` - 1; the steps of a session are in order.
        sessions: The session of each step.
        count: The number of kinds.
        steps: The index of each step in its session; no pair spans a gap. If None, gaps do not matter.

    Returns:
        A row for each session in the order of first appearance, shape (sessions, count + count²): kinds, then pairs.

    >>> session_vectors(np.array([0, 1, 1]), np.array([7, 7, 7]), 2).tolist()
    [[1.0, 2.0, 0.0, 1.0, 0.0, 1.0]]
    """
    numbers = {session: number for number, session in enumerate(dict.fromkeys(sessions.tolist()))}
    rows = np.zeros((len(numbers), count + count**2))
    last: dict[int, int] = {}
    for index, (kind, session) in enumerate(zip(kinds.tolist(), sessions.tolist(), strict=True)):
        row, before = rows[numbers[session]], last.get(session)
        row[kind] += 1
        if before is not None and (steps is None or steps[index] == steps[before] + 1):
            row[count + kinds[before] * count + kind] += 1
        last[session] = index
    return rows


def coverage(human: Floats, simulated: Floats, neighbours: int = NEIGHBOURS) -> float:
    """Computes the share of human sessions that simulated ones cover; NaN without simulated ones.

    Args:
        human, simulated: The rows of `session_vectors`.
        neighbours: k, the rank of the human neighbour at the edge of a session's ball. With at most k human sessions
            the result is NaN.

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
    """The metrics at the head of this module; None if one cannot be computed."""

    action_mix_divergence: float | None
    transition_divergence: float | None
    user_icc: float | None
    logged_user_icc: float | None
    user_icc_ratio: float | None
    user_agreement: float | None
    entropy_ratio: float | None
    coverage: float | None


def people_figures(records: Sequence[StepRecord]) -> PeopleFigures:
    """Computes the metrics of a run; steps without a reply are left out on both sides."""
    table = StepTable(records, MetricChoices())
    answered, logged = table.predicted_fine, table.logged_fine
    users, _ = table.clusters("user")
    sessions, _ = table.clusters("session")
    agent, people = (variance_components(rows, rows, users) for rows in map(_one_hot, (answered, logged)))
    icc, logged_icc = (None if parts is None else _nan_to_none(parts.correlation) for parts in (agent, people))
    entropy, logged_entropy = (entropy_within(kinds, users) for kinds in (answered, logged))
    vectors = [session_vectors(kinds, sessions, KINDS) for kinds in (logged, answered)]
    steps = np.array([record.step_index for record in table.records])
    counts = [session_vectors(kinds, sessions, KINDS, steps).sum(axis=0) for kinds in (logged, answered)]
    return PeopleFigures(
        action_mix_divergence=js_divergence(*(of_side[:KINDS] for of_side in counts)) if len(table) else None,
        transition_divergence=js_divergence(*(of_side[KINDS:] for of_side in counts)) if len(table) else None,
        user_icc=icc,
        logged_user_icc=logged_icc,
        user_icc_ratio=None if icc is None or logged_icc is None or logged_icc < PEOPLE_DIFFER else icc / logged_icc,
        user_agreement=user_agreement(_one_hot(answered), _one_hot(logged), users),
        entropy_ratio=entropy / logged_entropy if logged_entropy > 0 else None,
        coverage=_nan_to_none(coverage(vectors[0], vectors[1])),
    )


def kind_counts(records: Sequence[StepRecord]) -> dict[str, dict[str, int]]:
    """Counts the kinds of action of the answered steps, `logged` and `answered`, by the names in KIND_NAMES."""
    table = StepTable(records, MetricChoices())
    sides = {"logged": table.logged_fine, "answered": table.predicted_fine}
    return {
        side: dict(zip(KIND_NAMES, np.bincount(codes, minlength=KINDS).tolist(), strict=True))
        for side, codes in sides.items()
    }


def js_divergence(left: Floats, right: Floats) -> float:
    """Computes the Jensen-Shannon divergence, base 2, of two distributions given as counts of the same things.

    An empty and a non-empty distribution have the largest value, 1, because an agent that does nothing is not similar
    to people.

    >>> js_divergence(np.array([1, 0]), np.array([0, 5])), js_divergence(np.array([1, 1]), np.array([2, 2]))
    (1.0, 0.0)
    """
    if not (left.any() and right.any()):
        return float(left.any() or right.any())
    return float(jensenshannon(left, right, base=2) ** 2)


def _one_hot(kinds: Codes) -> Floats:
    return np.eye(KINDS)[kinds]


def _nan_to_none(value: float) -> float | None:
    return None if np.isnan(value) else value
