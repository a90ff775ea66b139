import time

import pytest

from replay_sessions.elements import find_elements


def names(page: str) -> list[str]:
    return [element.name for element in find_elements(page)]


def test_elements_come_in_document_order_with_text_and_accepted_action():
    page = """
    <form><input name="search_input" aria-label="Search the shop" value="kettle">
    <input name="search_button" type="submit" value="Go"></form>
    <li name="colour.red" role="checkbox"> Red <input type="checkbox"></li>
    <textarea name="note" placeholder="A note"></textarea><div name="editor" contenteditable="true"></div>
    <div name="box" role="searchbox">find</div><select name="size"><option>S<option>M</select>
    """
    found = [(e.name, e.tag, e.role, e.text, e.accepts) for e in find_elements(page)]
    assert found == [
        ("search_input", "input", None, "Search the shop", "type"),
        ("search_button", "input", None, "Go", "click"),
        ("colour.red", "li", "checkbox", "Red", "click"),
        ("note", "textarea", None, "A note", "type"),
        ("editor", "div", None, "", "type"),
        ("box", "div", "searchbox", "find", "type"),
        ("size", "select", None, "S M", "click"),
    ]


def test_a_container_of_nested_names_is_no_element():
    page = '<div name="refinements"><ul><li name="refinements.color.red">Red</li></ul></div>'
    assert names(page) == ["refinements.color.red"]


def test_a_name_continued_elsewhere_is_still_an_element():
    assert names('<a name="page">1</a><a name="page.2">2</a>') == ["page", "page.2"]
    assert names('<div name="card">x</div><div><a name="card.open">y</a></div>') == ["card", "card.open"]


def test_a_container_with_unrelated_names_inside_is_an_element():
    assert names('<ul name="pagination"><li name="page_link.1">1</li></ul>') == ["pagination", "page_link.1"]


def test_of_two_elements_with_one_name_the_first_counts_unless_it_is_a_container():
    assert [e.text for e in find_elements('<a name="x">first</a><a name="x">second</a>')] == ["first"]
    nested = '<div name="icon"><div name="icon"></div><div name="icon.2"></div></div>'
    assert names(nested) == ["icon", "icon.2"]


def test_a_label_names_its_input():
    page = '<label for="e">Email</label><input id="e" name="email">'
    assert find_elements(page)[0].text == "Email"


@pytest.mark.parametrize(
    "page", ["", "\0", "<", "<a name>", "<a name=''>x</a>", "text", "<input type=hidden name=token>"]
)
def test_a_page_without_names_has_no_elements(page):
    assert find_elements(page) == []


def test_names_keep_any_letters():
    assert names('<a name="首页.电热水壶">首页</a><a name="a&amp;b &quot;c&quot;">x</a>') == [
        "首页.电热水壶",
        'a&b "c"',
    ]


@pytest.mark.parametrize("inner", ["a", "a.b"])
def test_deep_nesting_takes_linear_time(inner):
    started = time.monotonic()
    assert names(f'<div name="{inner}">' * 5000 + '<p name="a.b.c">x') == ["a.b.c"]
    assert time.monotonic() - started < 2


def test_the_page_printed_in_the_papers(shared_data):
    page = (shared_data / "shopcart_format" / "paper_example_results_page.html").read_text()
    found = names(page)
    assert len(found) == 33
    assert found[:3] == ["search_input", "search_button", "refinements.amazon_prime.prime_eligible"]
    assert "refinements" not in found
