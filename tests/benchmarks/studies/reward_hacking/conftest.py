"""Guesses whose chances are round numbers, and the answers of all policies on a small store."""

from pathlib import Path

import pytest

from benchmarks.studies.reward_hacking.earnings import Answers, collect_answers
from benchmarks.studies.reward_hacking.guesses import Guess
from replay_sessions.store import SessionStore


def guess(right: float, near: float, similarity: float) -> Guess:
    found = Guess()
    for weight, like, is_right in ((right, 1.0, True), (near, similarity, False), (1 - right - near, 0.0, False)):
        found.add(weight, like, right=is_right)
    return found


@pytest.fixture
def guesses() -> dict[str, Guess]:
    """At τ 0.75: of wrong clicks a tenth earn 0.8 of the similarity, of wrong texts a fifth 0.75."""
    return {
        "wrong_click": guess(0.0, 0.1, 0.8),
        "wrong_text": guess(0.0, 0.2, 0.75),
        "first": guess(0.2, 0.05, 0.75),
        "invented": guess(0.0, 0.5, 0.8),
    }


@pytest.fixture(scope="session")
def answers(store_path: Path) -> dict[str, Answers]:
    store = SessionStore.open(store_path)
    policies = collect_answers(store, "all", references=None, max_sessions=40, seed=0)
    return {policy.label: policy for policy in policies}
