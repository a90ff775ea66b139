"""Private data: planted cases of several kinds and countries, and product text that must stay as it is."""

import html
import re
import tomllib
from pathlib import Path

import pytest

from replay_sessions.simplify import simplify
from replay_sessions.simplify.names import slug
from replay_sessions.simplify.private_data import find_private_data

_FOLDER = Path(__file__).parent
_CASES = [
    (kind, where, around, secret)
    for kind, cases in tomllib.loads((_FOLDER / "private_cases.toml").read_text("utf-8")).items()
    for where, around, secret in cases
]
_PRODUCT_TEXTS = [line for line in (_FOLDER / "product_texts.txt").read_text("utf-8").splitlines() if line]
_PAGE = "<body><h1>Red kettle, 1.7 l</h1><p>$29.99</p>{}<button>Add to cart</button></body>"


def is_left(around: str, secret: str) -> bool:
    page = html.unescape(simplify(_PAGE.format(around.replace("{}", secret))).html)
    names = " ".join(re.findall(r' name="([^"]*)"', page))
    return secret in page or slug(secret) in names


def test_at_least_95_percent_of_200_planted_secrets_are_found() -> None:
    missed = [case for case in _CASES if is_left(*case[2:])]
    assert len(_CASES) >= 200
    assert {where for _, where, _, _ in _CASES} == {"text", "attribute", "name"}
    assert len(missed) <= 0.05 * len(_CASES), missed


@pytest.mark.parametrize("kind", ["name", "email", "phone", "card", "order", "address"])
def test_at_least_90_percent_of_each_kind_are_found(kind: str) -> None:
    cases = [case for case in _CASES if case[0] == kind]
    missed = [case for case in cases if is_left(*case[2:])]
    assert len(missed) <= 0.1 * len(cases), missed


def test_less_than_2_percent_of_product_texts_change() -> None:
    pages = [f"<body><p>{html.escape(text)}</p><a href=x>{html.escape(text)}</a></body>" for text in _PRODUCT_TEXTS]
    changed = [page for page in pages if simplify(page) != simplify(page, private_data=False)]
    assert len(pages) >= 100
    assert len(changed) < 0.02 * len(pages), changed


def test_what_was_removed_is_reported_with_its_kind_and_what_gave_it_away() -> None:
    page = simplify("<p>Hello, Anna</p><p>anna@example.com</p><div class=author itemprop=author>Bo</div>")
    assert [(removal.kind, removal.text, removal.found_by) for removal in page.removed] == [
        ("name", "Bo", "place"),
        ("name", "Anna", "label"),
        ("email", "anna@example.com", "pattern"),
    ]


def test_only_the_flag_leaves_private_data_in() -> None:
    page = "<p>Hello, Anna</p>"
    assert "Hello, [name]" in simplify(page).html
    untouched = simplify(page, private_data=False)
    assert "Hello, Anna" in untouched.html
    assert untouched.removed == ()


def test_what_is_found_once_is_removed_wherever_the_page_repeats_it() -> None:
    page = simplify(
        "<p>Hello, Anneliese</p><p>Anneliese, buy it again!</p><a href=x>Lists of Anneliese</a><p>Annelieses</p>"
    )
    assert "[name], buy it again!" in page.html
    assert 'name="lists_of_name"' in page.html
    assert "<p>Annelieses</p>" in page.html


def test_names_broken_over_several_tags_are_found() -> None:
    assert "Smith" not in simplify("<p>Signed in as <b>John</b> <i>Smith</i></p>").html


def test_reviewers_may_call_themselves_anything() -> None:
    page = simplify("<h1>Doorbell</h1><p>By <span itemprop=author>Doorbell</span></p>").html
    assert "<h1>Doorbell</h1>" in page
    assert "By [name]" in page


def test_a_free_phone_line_is_nobodys() -> None:
    assert find_private_data("Call 1-800-275-2273 or 0800 330 1000") == []


def test_a_country_is_removed_where_it_says_where_things_go_and_nowhere_else() -> None:
    page = simplify("<a href=x>Deliver to Netherlands</a><p>Made in the Netherlands</p>").html
    assert "Deliver to [address]" in page
    assert "Made in the Netherlands" in page
