"""The cases of private data are what they are said to be, and what is measured on them can be counted by hand."""

import json
from pathlib import Path
from typing import get_args

import pytest

from benchmarks.studies.private_data.__main__ import (
    digest,
    false_removals,
    measure_half,
    product_texts,
    recall,
)
from benchmarks.studies.private_data.cases import (
    STAY,
    Case,
    Half,
    Outcome,
    Planted,
    is_left,
    load_cases,
    outcomes,
    redact,
)
from replay_sessions.private_data import Removal

HALVES: tuple[Half, ...] = get_args(Half)
KINDS = {
    "birth", "card", "credential", "email", "iban", "id", "name", "order", "phone", "reference", "street", "town", STAY
}  # fmt: skip
RECORDED = Path(__file__).parents[3] / "benchmarks" / "results" / "private_data" / "private_data.json"


@pytest.mark.parametrize("half", HALVES)
def test_each_part_has_100_cases_in_20_templates_and_15_languages_of_every_kind(half: Half) -> None:
    cases = load_cases(half)
    assert len(cases) >= 100
    assert len({case.template for case in cases}) >= 20
    assert len({case.language for case in cases}) >= 15
    assert {planted.kind for case in cases for planted in case.planted} == KINDS
    assert {case.medium for case in cases} == {"page", "url", "text", "session"}
    assert not [case for case in cases if "[[" in case.text or not case.planted]


def test_the_halves_share_languages_and_neither_templates_nor_private_data() -> None:
    development, held_out = (load_cases(half) for half in ("development", "held_out"))
    assert {case.language for case in development} >= {case.language for case in held_out}
    assert not {case.template for case in development} & {case.template for case in held_out}
    texts = [
        {one.text for case in half for one in case.planted if one.kind != STAY} for half in (development, held_out)
    ]
    assert not texts[0] & texts[1]


@pytest.mark.parametrize("half", HALVES)
def test_all_that_is_planted_is_there_before_redaction_or_in_a_field_that_is_always_masked(half: Half) -> None:
    for case in load_cases(half):
        raw = redact(case, private_data=False)
        is_masked = any(kind in raw for kind in ("[email]", "[phone]", "[address]"))
        assert is_masked or not [one for one in case.planted if not is_left(one, raw)], (case.template, case.language)


@pytest.mark.parametrize("half", HALVES)
def test_card_and_account_numbers_have_valid_check_digits(half: Half) -> None:
    for one in (one for case in load_cases(half) for one in case.planted):
        characters = [character for character in one.text if character.isalnum()]
        if one.kind == "card":
            digits = [int(digit) for digit in reversed(characters)]
            assert (sum(digits[::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])) % 10 == 0
        if one.kind == "iban":
            assert int("".join(str(int(character, 36)) for character in characters[4:] + characters[:4])) % 97 == 1


@pytest.mark.parametrize(
    ("kind", "secret", "left", "gone"),
    [
        ("name", "Anna Lindqvist", "[name] Lindqvist", "[name]"),
        ("name", "Joost van Hagen", "ik ben [name] Hagen", "ik ben [name] van"),
        ("name", "joost hagen", "ik ben [name] hagen", "ik ben [name]"),
        ("name", "Nico", "Nico's", '<a name="nicotine">nicotine</a>'),
        ("name", "Nico", '<a name="lists_of_nico">x</a>', '<a name="lists_of_name">x</a>'),
        ("name", "林晓峰", "我叫林晓峰", "我叫[name]"),
        ("street", "14 Larkspur Close", "[address] Larkspur", "14 [address] Close"),
        ("town", "48149 Münster", "48149 [address]", "[address] Münster"),
        ("card", "4036 4262 1299 7222", "[card] 7222", "[card]"),
        ("credential", "eyJhbGciOiJI.eyJzdWIiOiI0", "x.eyJzdWIiOiI0", "token=[credential]"),
        ("birth", "3 May 1979", "born 3 May 1979", "born [date]"),
    ],
)
def test_what_counts_as_left(kind: str, secret: str, left: str, gone: str) -> None:
    assert is_left(Planted(kind, secret), left)
    assert not is_left(Planted(kind, secret), gone)


def test_a_text_that_must_stay_is_lost_once_any_of_it_is_gone() -> None:
    assert is_left(Planted(STAY, "Dear Santa"), "Dear Santa Mug")
    assert not is_left(Planted(STAY, "Dear Santa"), "Dear [name] Mug")


def test_a_case_is_measured_where_it_stands() -> None:
    mail = Planted("email", "ann@inbox.example")
    by_medium = {
        "page": Case("a", "en", "page", "", "<p>ann@inbox.example</p>", [mail]),
        "url": Case("b", "en", "url", "", "https://a.example/?user=ann@inbox.example", [mail]),
        "text": Case("c", "en", "text", "", "write to ann@inbox.example", [mail]),
        "session": Case(
            "d",
            "en",
            "session",
            "<main><a href=/2>Next</a></main>",
            "<p>ann@inbox.example</p>",
            [mail, Planted(STAY, "x")],
        ),
    }
    results = outcomes(list(by_medium.values()))
    assert [(one.case.medium, one.planted.kind, one.is_left) for one in results] == [
        *((medium, "email", False) for medium in by_medium),
        ("session", STAY, False),
    ]


def test_the_interval_of_recall_counts_templates_and_texts_where_those_do_not_differ() -> None:
    def results(*shares: tuple[int, int]) -> list[Outcome]:
        return [
            Outcome(Case(f"t{number}", "en", "page", "", "", []), Planted("name", "Ann"), position >= gone)
            for number, (gone, texts) in enumerate(shares)
            for position in range(texts)
        ]

    apart = recall(results(*[(4, 4), (0, 4)] * 4))
    assert (apart["recall"], apart["interval_over"]) == (0.5, "templates")
    # The shares are 1 and 0, four each: SE² = 8 · 0.5² / (8 · 7), t(7) = 2.365.
    assert apart["low"] == pytest.approx(0.5 - 2.3646 * (2 / 56) ** 0.5, abs=1e-4)
    none = recall(results(*[(0, 3)] * 10))
    assert (none["recall"], none["interval_over"]) == (0.0, "texts")
    # Wilson 1927: 0 of 30 is compatible with up to z² / (n + z²).
    assert none["high"] == pytest.approx(1.959964**2 / (30 + 1.959964**2), abs=1e-6)


@pytest.mark.long
def test_figures_of_the_held_out_half_do_not_say_which_texts_are_missed() -> None:
    figures = {half: measure_half(half) for half in HALVES}
    assert "wrong" in figures["development"]
    written = json.dumps(figures["held_out"], ensure_ascii=False)
    cases = load_cases("held_out")
    assert not [case.template for case in cases if case.template in written]
    assert not [one.text for case in cases for one in case.planted if one.text in written]


def test_a_judged_removal_is_known_by_its_digest_only() -> None:
    assert digest(Removal("name", "Ann  Lee", "label")) == digest(Removal("name", "ann lee", "pattern"))


@pytest.mark.long
def test_500_different_product_texts_are_drawn(shared_data: Path) -> None:
    texts = product_texts(shared_data)
    assert len(texts) == len(set(texts)) == 500
    assert texts == product_texts(shared_data)


@pytest.mark.long
def test_removals_on_raw_pages_are_listed_unless_they_are_private(shared_data: Path) -> None:
    figures = false_removals(shared_data)
    assert figures["pages"] >= 70
    assert len(figures["which"]) <= 0.1 * figures["pages"]


def test_the_record_is_of_these_cases() -> None:
    recorded = json.loads(RECORDED.read_text("utf-8"))
    for half in HALVES:
        cases = load_cases(half)
        assert recorded["halves"][half]["cases"] == len(cases)
        assert recorded["halves"][half]["must_stay"] == sum(
            len({one for one in case.planted if one.kind == STAY}) for case in cases
        )
