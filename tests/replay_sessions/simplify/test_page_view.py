"""A shown page can run, load, submit and navigate nothing. Judged by html5lib, which reads as browsers do."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from xml.etree.ElementTree import Element

import html5lib
import pytest
from bs4 import BeautifulSoup
from hypothesis import example, given
from hypothesis import strategies as st

from replay_sessions.elements import find_elements
from replay_sessions.simplify.page_view import STYLE_SOURCE, page_document

HOSTILE_PAGES = Path(__file__).parents[2].joinpath("fixtures", "hostile_pages.txt").read_text("utf-8").splitlines()


def words(*lines: str) -> list[str]:
    return " ".join(lines).split()


ACTIVE_TAGS = words(
    "script iframe frame frameset object embed applet base link template svg math form img picture video audio source",
    "track portal noscript noframes noembed xmp plaintext marquee map area dialog select option",
)
HARMLESS_ATTRIBUTES = words(
    "aria-checked aria-current aria-disabled aria-expanded aria-label aria-level aria-pressed aria-selected",
    "aria-valuenow aria-valuetext charset checked class colspan content contenteditable data-acts data-mark data-part",
    "dir disabled for http-equiv id lang max min name open placeholder readonly role rows rowspan scope span start",
    "step title type value",
)
TAGS = words(
    "a b body button caption col details dialog div embed form frameset h1 iframe img input label li link math meta",
    "mtext noscript object option p plaintext pre script select span style svg table tbody td template textarea title",
    "tr x-card xmp",
)
KEYS = words(
    "name onclick ONLOAD href src srcset style action formaction srcdoc xlink:href http-equiv content class id title",
    "aria-label type value role contenteditable data-mark data-acts ping background target autofocus",
)
VALUES = st.one_of(
    st.sampled_from(["a", "b.c", "b", "javascript:alert(1)", "https://evil.example/", "data:text/html,<script>"]),
    st.sampled_from(["refresh", "hidden", "0;url=//evil.example", "position:fixed;background:url(//evil.example)"]),
    st.sampled_from(['"><script>x</script>', "</textarea>"]),
    st.text(max_size=8),
)


@st.composite
def fragments(draw: st.DrawFn) -> str:
    """Pieces of HTML in any order: start tags, end tags, comments, text; seldom well-formed."""
    pieces = []
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.integers(0, 9))
        if kind < 6:
            quote = draw(st.sampled_from(['"', "'", ""]))
            written = [
                f"{key}={quote}{value}{quote}"
                for key, value in draw(st.lists(st.tuples(st.sampled_from(KEYS), VALUES), max_size=3))
            ]
            pieces.append(f"<{' '.join([draw(st.sampled_from(TAGS)), *written])}>")
        elif kind < 8:
            pieces.append(f"</{draw(st.sampled_from(TAGS))}>")
        else:
            pieces.append(draw(st.one_of(st.sampled_from(["<!--", "-->", "<![CDATA[", "]]>", "<script", "x"]), VALUES)))
    return "".join(pieces)


def elements_of(document: str) -> Iterator[Element]:
    tree = html5lib.parse(document, namespaceHTMLElements=False)
    return (element for element in tree.iter() if isinstance(element.tag, str))


def check_inert(document: str) -> None:
    """Nothing in a document can run, load, submit, navigate or be in the way."""
    policies, styles = [], []
    for element in elements_of(document):
        assert element.tag.rpartition("}")[2].lower() not in ACTIVE_TAGS, element.tag
        assert {key.lower() for key in element.attrib}.issubset(HARMLESS_ATTRIBUTES), element.attrib
        assert element.get("type", "").lower() not in ("file", "image")
        if element.tag == "meta" and element.get("http-equiv"):
            policies.append((element.get("http-equiv"), element.get("content")))
        if element.tag == "style":
            styles.append(element.text)
    assert policies == [("Content-Security-Policy", f"default-src 'none'; style-src {STYLE_SOURCE}")]
    assert len(styles) == 1
    assert "url(" not in styles[0] and "@import" not in styles[0] and "fixed" not in styles[0]
    assert [style.string for style in BeautifulSoup(document, "lxml").find_all(["style", "script"])] == styles


@pytest.mark.parametrize("page", HOSTILE_PAGES)
def test_a_hostile_page_is_shown_without_anything_that_acts(page):
    check_inert(page_document(page))


@pytest.mark.parametrize("page", HOSTILE_PAGES)
def test_every_element_to_act_on_is_shown_under_its_name(page):
    check_names(page)


def check_names(page: str) -> None:
    shown = {}
    for element in elements_of(page_document(page)):
        if element.get("data-acts"):
            shown.setdefault(element.get("name"), element.get("data-acts"))
    assert shown == {element.name: element.accepts for element in find_elements(page)}


@given(fragments())
@example("<svg><textarea name=a><b name=b.c>")
def test_no_fragment_becomes_active(page):
    document = page_document(page, marks={"a": "logged", "b.c": "chosen"})
    check_inert(document)


@given(fragments())
@example('</a><a><math><style><a name="a">')
def test_no_fragment_loses_a_name(page):
    check_names(page)


@given(st.text(st.characters(exclude_categories=("Cc", "Cs"))))
def test_text_is_shown_as_it_is(text):
    body = next(element for element in elements_of(page_document(f"<p>{escape(text)}")) if element.tag == "body")
    assert "".join(body.itertext()) == text


def test_a_document_in_an_attribute_is_read_back_as_it_was():
    document = page_document("<p>&quot;</iframe>'")
    frame = f'<iframe sandbox srcdoc="{escape(document)}"></iframe>'
    assert [element.get("srcdoc") for element in elements_of(frame) if element.tag == "iframe"] == [document]


def test_marks_stand_on_the_first_element_of_the_name_and_around_fields():
    page = '<a name="cart">Cart</a><a name="cart">Again</a><input name="search"><textarea name="note"></textarea>'
    marks = {"cart": "logged chosen", "search": "chosen", "note": "logged", "absent": "logged"}
    marked = [element for element in elements_of(page_document(page, marks=marks)) if element.get("data-mark")]
    assert [(one.tag, one.get("data-mark")) for one in marked] == [
        ("a", "logged chosen"),
        ("span", "chosen"),
        ("span", "logged"),
    ]
    assert marked[0].text == "Cart"
    assert [one[0].get("name") for one in marked[1:]] == ["search", "note"]


def test_a_mark_cannot_break_out():
    check_inert(page_document('<a name="a">a</a>', marks={"a": '"><script>alert(1)</script>'}))


def test_closed_and_hidden_parts_are_shown():
    page = (
        '<title>Tents</title><details><summary name="more">More</summary>2.1 kg</details><dialog>Sale</dialog>'
        '<select name="size"><option name="size.s" selected>S<option name="size.m">Medium</select>'
        '<img alt="A red tent"><p hidden>from 49</p>'
    )
    document = page_document(page)
    body = next(element for element in elements_of(document) if element.tag == "body")
    for words in ("Tents", "2.1 kg", "Sale", "Medium", "A red tent", "from 49"):
        assert words in "".join(body.itertext())
    assert [one.get("name") for one in elements_of(document) if one.get("aria-selected")] == ["size.s"]
    assert [one.tag for one in elements_of(document) if "open" in one.attrib] == ["details"]


def test_pages_nest_deeper_than_python_does():
    document = page_document("<div>" * 20_000 + '<a name="deep">x')
    assert document.count("<div>") == 20_000
    assert 'name="deep"' in document
