"""Style sheets that are damaged, odd or long; test_browser_visibility holds what they say against a browser."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from replay_sessions.simplify import simplify
from replay_sessions.simplify.css_selectors import parse_selectors
from tests.damage import damaged

_WORDS = """
{ } ; : , ( ) [ ] ' " \\ /* */ @media @layer @supports @container @import & > + ~ * .a #i p ::before :is( :not( :has(
:host ::slotted( :hover [x=y] display visibility none hidden visible var(--x) --x !important and or not é \ud83e
<!-- --> </style> url( 1e99px /0 calc(1px) | u+1-2 %"""
_PIECES = [*_WORDS.split(), "@layer a", "@scope (.a)", " ", "\n", "\0", "width >= 40rem", "min-width: 1px", "\\7b "]
_SHADOW = "<x-a><template shadowrootmode=open><style>{}</style><slot></slot></template><p class=a id=i>x</p></x-a>"
_SHOWN = "style='display: block !important; visibility: visible !important'"  # whatever a sheet says
_PAGE = f"<html {_SHOWN}><body {_SHOWN}><style>{{}}</style>{_SHADOW}"


_SHEET = """@layer a, b; @layer b { .a:not(.b, :hover) > p { display: none !important; &.c { visibility: hidden } } }
    @media screen and (400px <= width < 90rem), print { [title~="x;}"] ~ p:is(.a, #i) { display: var(--x, block) } }
    :root { --x: none } /* } */ @supports (display: grid) and (not (x: y)) { p::before { display: none } }"""


@settings(max_examples=200, deadline=None)
@given(damaged([_SHEET, ""], st.sampled_from(_PIECES) | st.text(max_size=9)))
@example("display:is(:is(")  # breaks tinycss2 before 1.2
@example(":not(.b, :hover) > p { display: none")  # hides every paragraph that is not shown by its attribute
@example("* { display: none !important")
def test_no_style_sheet_breaks_a_page(css):
    attribute = css.replace("'", "&#39;")
    assert (
        "after" in simplify(f"{_PAGE.replace('{}', css)}<p style='{attribute}'></p><p {_SHOWN}>after</p>").html
        or "<" in css
    )


def test_a_rule_that_is_not_understood_may_show_but_not_hide():
    rule = ":unheard-of(x) {{ display: {} }}"
    assert "seen" in simplify(f"<style>p{rule.format('none')}</style><p>seen</p>").html
    assert "seen" in simplify(f"<style>p{{display:none}} p{rule.format('block')}</style><p>seen</p>").html
    for around in ("@container (height > 1px)", "@container style(--x: y)", "@media (unheard-of: 1)"):
        assert "seen" in simplify(f"<style>{around} {{ p {{ display: none }} }}</style><p>seen</p>").html
        shown = f"<style>p {{ display: none }} {around} {{ p {{ display: block }} }}</style><p>seen</p>"
        assert "seen" in simplify(shown).html


@pytest.mark.parametrize(
    ("selector", "specificity"),
    [
        ("a.b#c[d]:first-child", (1, 3, 1)),
        (":is(.a, #b) p", (1, 0, 1)),
        (":where(#a) :not(.b, p)", (0, 1, 0)),
        ("p:has(> #a)", (1, 0, 1)),
        ("*", (0, 0, 0)),
    ],
)
def test_a_selector_has_the_specificity_of_css(selector, specificity):
    assert [item.specificity for item in parse_selectors(selector)] == [specificity]


@pytest.mark.parametrize(
    ("sheet", "elements"),
    [
        ("<![CDATA[ i{} .a{display:none} ]]>", ["a", "b"]),
        ("<![CDATA[ i{} .a{display:none} ]]> .b{display:none}", ["a", "b"]),  # its selector is invalid, too
        ("<![CDATA[ i{} ]]> i{} .b{display:none}", ["a"]),
        ("/*<![CDATA[*/ .a{display:none} /*]]>*/", ["b"]),
        ("<![CDATA[ i{} .a{display:none}", ["a", "b"]),
    ],
)
def test_the_content_of_cdata_is_no_rule_to_a_browser(sheet, elements):
    page = f"<style>{sheet}</style><a class=a href=a>a</a><a class=b href=b>b</a>"
    assert [element.name for element in simplify(page).elements] == elements
