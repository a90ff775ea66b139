"""ROUGE-L equals rouge_score to the last bit, but for equal texts."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shop_env.reward.similarity import rouge_l, rouge_l_reference

WORDS = (
    "red",
    "kettle",
    "search_results",
    "view_product",
    "4",
    "İ",
    "K",
    "ß",
    "Ärger",
    "红",
    "a-b",
    "x" * 30,
    "",
    "É1é2",
)


def _random_pair(rng: random.Random) -> tuple[str, str]:
    target = [rng.choice(WORDS) for _ in range(rng.randrange(0, 90))]
    if rng.random() < 0.5:
        prediction = [word if rng.random() < 0.8 else rng.choice(WORDS) for word in target]
        rng.shuffle(prediction[: rng.randrange(0, 10)])
    else:
        prediction = [rng.choice(WORDS) for _ in range(rng.randrange(0, 30))]
    separator = rng.choice([" ", ".", "_", ". ", "红"])
    return separator.join(prediction), separator.join(target)


def _assert_identical(prediction: str, target: str) -> None:
    expected = 1.0 if prediction == target else rouge_l_reference(prediction, target)
    assert rouge_l(prediction, target) == expected, (prediction, target)


def test_thousands_of_random_pairs_are_identical_to_rouge_score() -> None:
    rng = random.Random(5)
    for _ in range(2_000):
        _assert_identical(*_random_pair(rng))


@pytest.mark.slow  # the table of rouge_score takes most of a minute
def test_twenty_thousand_random_pairs_are_identical_to_rouge_score() -> None:
    rng = random.Random(6)
    for _ in range(20_000):
        _assert_identical(*_random_pair(rng))


@given(st.text(), st.text())
def test_any_two_texts_are_identical_to_rouge_score(prediction: str, target: str) -> None:
    _assert_identical(prediction, target)


@given(st.lists(st.sampled_from("abc")).map(" ".join), st.lists(st.sampled_from("abc")).map(" ".join))
def test_texts_of_few_words_are_identical_to_rouge_score(prediction: str, target: str) -> None:
    _assert_identical(prediction, target)


def test_equal_text_without_a_token_counts_as_one() -> None:
    assert rouge_l("红色水壶", "红色水壶") == 1.0
    assert rouge_l_reference("红色水壶", "红色水壶") == 0.0
    assert rouge_l("红色水壶", "红色水") == 0.0


def test_a_very_long_prediction_takes_linear_time() -> None:
    assert rouge_l("a b " * 200_000, "a b") == pytest.approx(2 / 200_001, rel=1e-9)
