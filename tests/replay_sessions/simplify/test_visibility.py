"""Parts that a shopper sees: style rules, closed and struck out parts, shadow trees, parts for screen readers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay_sessions.simplify import simplify
from tests.replay_sessions.simplify.test_actions import names


def body(html: str) -> str:
    return simplify(html).html.split("<body>")[1].split("\n</body>")[0].strip()


@pytest.mark.parametrize(
    "hidden",
    [
        "<dialog><p>secret</p></dialog>",
        "<details>secret<p>secret</p></details>",
        "<div popover>secret</div>",
        "<div inert><a href=x>secret</a></div>",
        "<style>.a{color:red;display:none}</style><p class='b a'>secret</p>",
        "<style>#a{display:none!important}</style><p id=a>secret</p>",
        "<style>#a.b{display:none}</style><p id=a class=b>secret</p>",
        "<style>x-y{visibility:hidden}</style><x-y>secret</x-y>",
        "<style>.menu .sub, .other{display:none}</style><div class=menu><div><p class=sub>secret</p></div></div>",
        "<style>@media (max-width: 90em){.a{display:none}}</style><p class=a>secret</p>",
        "<style>.a{display:block}.b{color:red}.a{display:none}</style><p class=a>secret</p>",
        "<style>/* .x{ */.a{display:none}</style><p class=a>secret</p>",
    ],
)
def test_closed_parts_and_parts_hidden_by_style_are_left_out(hidden):
    assert body(f"<p>shown</p>{hidden}") == "<p>shown</p>"


@pytest.mark.parametrize(
    "shown",
    [
        "<dialog open><p>shown</p></dialog>",
        "<details open><p>shown</p></details>",
        "<style>.a{display:none}.a.open{display:block}</style><p class='a open'>shown</p>",
        "<style>#a{display:block}.a{display:none}</style><p class=a id=a>shown</p>",
        "<style>.a{display:none}.a{display:flex}</style><p class=a>shown</p>",
        "<style>.a{display:none}#b.a{display:flex}</style><p class=a id=b>shown</p>",
        "<style>.a{display:none}.a{display:list-item}</style><p class=a>shown</p>",
        "<style>.a{display:none}.a{display:-webkit-flex}</style><p class=a>shown</p>",
        "<style>.a{display:none}</style><p class=a style='display:block'>shown</p>",
        "<style>@media (max-width: 700px){.a{display:none}}@media print{.a{display:none}}</style><p class=a>shown</p>",
        "<style>@media (hover: none){.a{display:none}}</style><p class=a>shown</p>",
        "<style>@media (min-width: 1.2.3px){.a{display:none}}</style><p class=a>shown</p>",
        "<style>.b .a{display:none}.a:hover{display:none}.a::before{display:none}</style><p class=a>shown</p>",
        "<style>.b>.a{display:none}</style><div class=b><div><p class=a>shown</p></div></div>",
        "<style>@keyframes x{from{visibility:hidden}}.a{color:red}</style><p class=a>shown</p>",
        "<style>.a[hidden]{display:block}</style><p class=a hidden>shown</p>",
        "<noscript><style>.a{display:none}</style></noscript><p class=a>shown</p>",
        "<style media=print>.a{display:none}</style><p class=a>shown</p>",
    ],
)
def test_open_parts_and_parts_shown_again_stay(shown):
    assert "shown" in body(shown)


def test_a_closed_details_still_shows_its_summary():
    page = "<details><summary>Size guide</summary><a href=x>secret</a></details>"
    assert names(page) == ["size_guide"]
    assert "secret" not in body(page)


def test_was_and_now_prices_are_kept_apart():
    assert body("<p><s>$50</s>$30</p>") == "<p><s>$50</s> $30</p>"
    assert body("<p><span><del>50 €</del><ins>30 €</ins></span></p>") == "<p><del>50 €</del> 30 €</p>"
    assert body("<p>Red<s></s>dish</p>").startswith("<p>Red")


def test_a_declarative_shadow_root_is_read():
    page = "<x-card><template shadowrootmode=open><a href=x>Buy</a><template>secret</template></template></x-card>"
    assert names(page) == ["buy"]
    assert "secret" not in body(page)


def test_a_template_in_a_drawing_is_no_shadow_root():
    drawing = "<svg><template shadowrootmode=open>secret</template></svg>"
    assert body(f"<p>shown</p>{drawing}") == "<p>shown</p>"


def test_a_page_that_only_speaks_of_shadow_roots_keeps_its_templates_closed():
    page = "<p>Set shadowrootmode=open.</p><script>'<template shadowrootmode=open>'</script><template>secret</template>"
    assert body(page) == "<p>Set shadowrootmode=open.</p>"


def test_elements_hidden_from_screen_readers_alone_can_be_clicked():
    page = """
        <li><h3><a href=1>Red kettle</a></h3><a href=1 aria-hidden=true tabindex=-1><img src=x></a></li>
        <div aria-hidden=true><p>said</p><a href=2><img src=y alt="Blue kettle"></a><button>Buy</button></div>
    """
    assert names(page) == ["red_kettle.view", "red_kettle.image", "blue_kettle", "buy"]


@pytest.mark.parametrize("declared", ["iso-8859-1", "windows-1251", "shift_jis"])
def test_utf_8_under_another_declared_charset_is_read_as_utf_8(declared):
    assert names(f"<meta charset={declared}><a href=x>Käse €</a>".encode()) == ["käse"]


def test_a_sheet_of_many_rules_takes_no_longer_than_it_is():
    rules = "".join(f".a .b{number} .c{{display:none}}" for number in range(5_000))
    page = f"<style>{rules}</style>" + "<div class=a>" * 500 + "<p class=c>x</p>" * 2_000
    assert body(page).count("<p>x</p>") == 2_000


_WORDS = st.sampled_from(["text", "<!-- note -->", "<a href=x>a</a>", "<a class=v href=x>b</a>", "<input required>"])
_TREES = st.recursive(
    _WORDS,
    lambda inner: st.builds(
        "<{0} class='{1}' style='{2}'>{3}</{0}>".format,
        st.sampled_from(["div", "span", "details", "select", "svg", "x-y", "label"]),
        st.sampled_from(["h", "v", "h v", "c", ""]),
        st.sampled_from(["", "", "visibility:visible", "visibility:hidden", "display:none"]),
        st.lists(inner, min_size=1, max_size=4).map("".join),
    ),
    max_leaves=12,
)


@given(
    st.lists(_TREES, max_size=4).map("".join),
    st.sampled_from(["", "<template shadowrootmode=open>text<!-- c --><slot></slot></template>"]),
)
@settings(max_examples=150, deadline=None)
def test_a_tree_of_elements_text_and_comments_raises_nothing_whatever_is_visible_in_it(tree, shadow):
    rules = ".h{visibility:hidden}.v,:valid{visibility:visible}.c{visibility:collapse}:invalid ~ *{visibility:hidden}"
    assert simplify(f"<style>{rules}</style><div class=h>{shadow}{tree}</div>{tree}").html.startswith("<html>")
