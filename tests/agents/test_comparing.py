"""A comparison holds the bootstrap's interval, the t interval and the exact test, and reads what older runs left."""

import msgspec
import pytest

from agents.comparing import adjusted, compare_records
from agents.results import Comparison
from replay_sessions.schema import Click
from shop_env.metrics import paired_difference, paired_test
from tests.shop_env.planted import answer, random_sessions

SESSIONS = random_sessions(40, 1)
RECORDS = {
    "right": answer(SESSIONS, lambda session, index: session.steps[index].action),
    "cart": answer(SESSIONS, lambda session, index: Click(name="cart")),
}
OLD = {"first": "a", "second": "b", "metric": "exact_accuracy", "difference": 0.1, "low": 0.05, "high": 0.15}


def test_it_holds_the_figures_of_the_bootstrap_and_of_the_tests() -> None:
    found = compare_records(RECORDS, "right", "cart", "exact_accuracy", samples=100, seed=3)
    assert (found.difference, found.low, found.high) == paired_difference(
        RECORDS["right"], RECORDS["cart"], "exact_accuracy", samples=100, seed=3
    )
    assert found.test == paired_test(RECORDS["right"], RECORDS["cart"], "exact_accuracy")


def test_the_sentence_tells_the_t_interval_the_exact_p_and_the_users() -> None:
    found = compare_records(RECORDS, "right", "cart", "exact_accuracy", samples=100)
    assert found.test is not None
    t_interval = f"[{100 * found.test.low:+.1f}, {100 * found.test.high:+.1f}]"
    bootstrap = f"[{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
    assert found.sentence().endswith(
        f"points {t_interval}: they differ (sign flips p 0.016, 7 users; bootstrap {bootstrap})."
    )


def test_what_decides_is_the_t_interval_and_not_the_bootstrap_that_is_too_narrow_for_few_users() -> None:
    found = compare_records(RECORDS, "right", "cart", "exact_accuracy", samples=100)
    assert found.test is not None
    narrow = msgspec.structs.replace(found, low=0.01, test=msgspec.structs.replace(found.test, low=-0.01))
    assert (narrow.sign, narrow.told_apart) == (0, False)
    assert "cannot be told apart" in narrow.sentence()
    wide = msgspec.structs.replace(found, low=-0.01)
    assert (wide.sign, wide.told_apart) == (1, True)
    worse = msgspec.structs.replace(found, test=msgspec.structs.replace(found.test, low=-0.2, high=-0.1))
    assert worse.sign == -1


def test_holm_goes_over_the_metrics_of_the_same_two() -> None:
    def compared(first: str, metric: str, p_value: float) -> Comparison:
        found = compare_records(RECORDS, "right", "cart", "exact_accuracy", samples=10)
        assert found.test is not None
        test = msgspec.structs.replace(found.test, sign_flip_p_value=p_value)
        return msgspec.structs.replace(found, first=first, metric=metric, test=test)

    old = msgspec.convert(OLD, Comparison)
    given = [
        compared("a", "x", 0.04),
        compared("b", "x", 0.04),
        old,
        compared("a", "y", 0.01),
        compared("a", "z", 0.03),
    ]
    assert [one.holm_p_value for one in adjusted(given)] == [pytest.approx(0.06), 0.04, None, 0.03, pytest.approx(0.06)]


def test_a_comparison_survives_its_file_and_one_of_an_older_run_has_no_test() -> None:
    found = compare_records(RECORDS, "right", "cart", "type_f1_macro", samples=10)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Comparison) == found
    old = msgspec.convert(OLD, Comparison)
    assert old.test is None
    assert old.sentence() == "a − b, exact_accuracy: +10.0 points [+5.0, +15.0]: they differ."


def test_one_user_alone_has_no_test() -> None:
    alone = {label: [r for r in side if r.user_id == "u0"] for label, side in RECORDS.items()}
    found = compare_records(alone, "right", "cart", "exact_accuracy", samples=10)
    assert found.test is None
    assert found.difference == pytest.approx(found.low)
