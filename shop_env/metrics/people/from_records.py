"""What the records of a run say of people: what was answered beside what was logged, step by step.

| figure | formula | range | source |
|---|---|---|---|
| `user_icc`, `logged_user_icc` | share of the variance of kinds of action that lies between users, answered and logged | below 0 by chance–1 | Donner 1986 |
| `user_icc_ratio` | the first / the second: 0 for one average shopper for all | ≥ 0 but for chance | of this project |
| `user_agreement` | correlation over users of what they do, answered and logged: 0 for a copy of somebody else | about -1–1 | of this project |
| `entropy_ratio` | H(kind, given the user) answered / logged: below 1 for an over-sharp agent | ≥ 0 | Miller 1955 |
| `coverage` | share of logged sessions that have an answered one within reach of their 5 nearest | 0–1 | Naeem et al. 2020 |

Kinds are types of action, clicks by what is clicked; a reply that cannot be read is a kind of its own. On logged pages
an agent sees what each person's past is: even one that knows nothing of persons then differs between users. Where the
logged ICC is below 0.02 people hardly differ: there is no ratio and no agreement.
"""  # noqa: E501 - a table row is a line

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from shop_env.metrics.people.between_users import PEOPLE_DIFFER, entropy_within, user_agreement
from shop_env.metrics.people.session_vectors import coverage, session_vectors
from shop_env.metrics.populations import ActionTrace, trace_of
from shop_env.metrics.records import StepRecord
from shop_env.metrics.statistics.effective_size import user_variance
from shop_env.metrics.step_table import FINE_TYPES, MetricChoices, StepTable

KIND_NAMES = (*FINE_TYPES, "invalid")
KINDS = len(KIND_NAMES)


class PeopleFigures(msgspec.Struct, frozen=True, kw_only=True):
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
        user_icc_ratio=_ratio(icc, logged_icc),
        user_agreement=user_agreement(_one_hot(answered), _one_hot(logged), users),
        entropy_ratio=varied / people_s if people_s > 0 else None,
        coverage=_known(coverage(vectors[0], vectors[1])),
    )


def traces_by_user(records: Sequence[StepRecord]) -> tuple[dict[str, list[ActionTrace]], dict[str, list[ActionTrace]]]:
    """Each user's sessions as kinds of action, logged and answered; no pair spans a step that was not answered."""
    table = StepTable(records, MetricChoices())
    sessions: dict[tuple[str, str], list[int]] = {}
    for index, record in enumerate(table.records):
        sessions.setdefault((record.user_id, record.session_id), []).append(index)
    sides: tuple[dict[str, list[ActionTrace]], dict[str, list[ActionTrace]]] = ({}, {})
    for (user, _), indices in sessions.items():
        steps = [table.records[index].step_index for index in indices]
        breaks = [at for at in range(1, len(steps)) if steps[at] != steps[at - 1] + 1]
        for side, codes in zip(sides, (table.logged_fine, table.predicted_fine), strict=True):
            trace = trace_of([KIND_NAMES[codes[index]] for index in indices], breaks=breaks)
            side.setdefault(user, []).append(trace)
    return sides


def _ratio(icc: float | None, logged_icc: float | None) -> float | None:
    return None if icc is None or logged_icc is None or logged_icc < PEOPLE_DIFFER else icc / logged_icc


def _one_hot(kinds: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.eye(KINDS)[kinds]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
