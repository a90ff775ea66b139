"""Differences of shares over users: nothing where nothing differs, told at the level that is said, and no oftener."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.ab.pages.shifts import LEVEL, differences, users_needed

Floats = NDArray[np.float64]


def shares(draw: np.random.Generator, users: int, steps: int) -> Floats:
    """Each user with a leaning of their own, (users * steps, kinds)."""
    leaning = draw.dirichlet(np.ones(4), size=users).repeat(steps, axis=0)
    return np.array([draw.dirichlet(1 + 5 * own) for own in leaning])


@settings(deadline=None)
@given(seed=st.integers(0, 999), users=st.integers(2, 30), steps=st.integers(1, 4))
def test_the_same_answers_differ_by_exactly_nothing(seed, users, steps):
    found = shares(np.random.default_rng(seed), users, steps)
    for one in differences(found, found.copy(), np.arange(users).repeat(steps)):
        assert (one.effect.difference, one.effect.low, one.effect.high) == (0, 0, 0)
        assert (one.p_value, one.holm_p_value, one.could_be_seen, one.significant) == (1, 1, None, False)


@settings(deadline=None)
@given(seed=st.integers(0, 999))
def test_shifts_of_all_kinds_sum_to_zero(seed):
    draw = np.random.default_rng(seed)
    found = differences(shares(draw, 12, 3), shares(draw, 12, 3), np.arange(12).repeat(3))
    assert abs(sum(one.effect.difference for one in found)) < 1e-12


def test_alike_pages_are_told_apart_in_any_kind_in_5_percent_of_cases_at_most():
    draw = np.random.default_rng(7)
    alarms = []
    for _ in range(400):
        before, after = shares(draw, 10, 2), shares(draw, 10, 2)
        alarms.append(any(one.significant for one in differences(before, after, np.arange(10).repeat(2))))
    assert np.mean(alarms) <= LEVEL + 2 * np.sqrt(LEVEL * (1 - LEVEL) / len(alarms))


def test_with_fewer_users_than_needed_not_even_100_points_are_told():
    for kinds in (1, 4, 6):
        needed = users_needed(kinds)
        for users, told in ((needed - 1, False), (needed, True)):
            before = np.zeros((users, kinds))
            after = before.copy()
            after[:, 0] = 1
            assert differences(before, after, np.arange(users))[0].significant is told
