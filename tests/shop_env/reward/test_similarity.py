"""ROUGE-L of ASCII texts equals rouge_score to the last bit, but for equal texts; words of other scripts count too."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shop_env.reward.similarity import rouge_l, rouge_l_reference

WORDS = ("red", "kettle", "search_results", "view_product", "4", "K", "O'Neil", "a-b", "x" * 30, "", "1\t2")
ASCII = st.text(st.characters(max_codepoint=127))


def _assert_identical(prediction: str, target: str) -> None:
    expected = 1.0 if prediction == target else rouge_l_reference(prediction, target)
    assert rouge_l(prediction, target) == expected, (prediction, target)


@given(ASCII, ASCII)
def test_any_two_ascii_texts_are_identical_to_rouge_score(prediction, target):
    _assert_identical(prediction, target)


TEXTS = st.builds(str.join, st.sampled_from([" ", ".", "_", ". ", "\n"]), st.lists(st.sampled_from(WORDS), max_size=90))


@settings(max_examples=300)
@given(TEXTS, TEXTS)
def test_texts_of_few_words_are_identical_to_rouge_score(prediction, target):
    _assert_identical(prediction, target)


@given(st.text(), st.text())
def test_any_two_texts_have_a_similarity_that_composition_and_order_do_not_change(one, other):
    similarity = rouge_l(one, other)
    assert 0 <= similarity <= 1 == rouge_l(one, one)
    assert rouge_l(unicodedata.normalize("NFD", one), unicodedata.normalize("NFC", other)) in (similarity, 1)
    assert rouge_l(other, one) == pytest.approx(similarity)


@pytest.mark.parametrize(
    ("one", "other", "similarity"),
    [
        ("ケース", "ｹｰｽ", 1),  # half-width
        ("ＩＰＨＯＮＥ １５", "iphone 15", 1),
        ("ガード", unicodedata.normalize("NFD", "ガード"), 1),
        ("케이스", unicodedata.normalize("NFD", "케이스"), 1),
        ("CAFÉ ΣΑΣ Straße", "café σας STRASSE", 1),
        ("می\u200cخواهم", "میخواهم", 1),  # a joiner
        ("Lego™ Café", "lego café", 1),
        ("5㎏", "5kg", 1),
        ("⭐️ red", "❤️ red", 1),  # signs are no words, nor are the selectors of their form
        ("红色水壶", "红色水", 6 / 7),
        ("สีแดง", "สีดำ", 2 / 7),  # letters with their marks, ำ as its two parts: สี แ ด ง and สี ดํ า
        ("iPhone15ケース", "iphone15 カバー", 0.5),  # iphone15 ケ ー ス, iphone15 カ バ ー
        ("빨간 주전자", "빨간 냄비", 0.5),
        ("किताब लाल", "कीताब लाल", 0.5),
        ("كِتَاب", "كَاتِب", 0),
        ("café", "cafe", 0),
        ("⭐", "❤", 0),
    ],
)
def test_words_of_any_script_count(one, other, similarity):
    assert rouge_l(one, other) == rouge_l(other, one) == pytest.approx(similarity)


def test_equal_text_without_a_token_for_rouge_score_counts_as_one():
    assert rouge_l("红色水壶", "红色水壶") == rouge_l("!", "!") == 1.0
    assert rouge_l_reference("红色水壶", "红色水壶") == 0.0


def test_a_very_long_prediction_takes_linear_time():
    assert rouge_l("a b " * 200_000, "a b") == pytest.approx(2 / 200_001, rel=1e-9)
