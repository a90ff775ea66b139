"""A web page of the demo shop says what the shop's own page says, and calls everything the same."""

import pytest
from selectolax.lexbor import LexborHTMLParser

from replay_sessions.demo_shop import generate_sessions
from replay_sessions.demo_shop.shop import results_page
from replay_sessions.demo_shop.web.dressing import write_web_page
from replay_sessions.elements import find_elements
from replay_sessions.simplify import simplify

BUTTON = "search"  # a form on the web has one


@pytest.mark.parametrize(("page_size", "sessions"), [("small", 15), ("compact", 15), ("realistic", 1)])
def test_elements_have_the_names_of_the_shop(page_size, sessions):
    pages = {step.page for session in generate_sessions(sessions, 1, page_size) for step in session.steps}
    for page in pages:
        simplified = simplify(write_web_page(page, "/visit/v/1"))
        found = [(element.name, element.accepts) for element in simplified.elements]
        assert [one for one in found if one[0].split(".")[-1] != BUTTON] == [
            (element.name, element.accepts) for element in find_elements(page)
        ]
        assert simplified == simplify(write_web_page(page, "/visit/v/1"), private_data=False)


def test_the_words_of_the_shop_are_on_the_web_page():
    pages = {step.page for session in generate_sessions(15, 2, "compact") for step in session.steps}
    for page in pages:
        told = words(simplify(write_web_page(page, "/visit/v/1")).html)
        missing = [word for word in words(page) if word not in told]
        assert missing == []


def words(page: str) -> set[str]:
    body = LexborHTMLParser(page).body
    return set(body.text(separator=" ").lower().split())


def test_typed_markup_is_shown_and_not_run():
    typed = '"><script>alert(1)</script>'
    tree = LexborHTMLParser(write_web_page(results_page(typed, "no match", [], "altavo", "mint"), "/visit/v/1"))
    assert tree.css("script") == []
    (field,) = tree.css("[name=q]")
    assert field.attributes["value"] == typed
