"""Rules change what they select and no other byte; what they leave is what a parser's own edits would leave."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from benchmarks.ab.pages.change import Rule, RuleChange, load_change
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.foundation.errors import BadConfig

PAGE = """<html>
<head><title>Tea &amp; more</title></head>
<body><!-- a <b> --><header name="nav"><a name="nav.cart" title='say "hi"'>Cart</a></header>
<div name="list"><p>Green tea <b>$4</b> &amp; up</p><button name="list.tea.buy">Buy <i>now</i></button></div>
<input name="q" value=""/><footer>Buy with us</footer></body>
</html>
"""


def changed(rule: str, page: str = PAGE, folder: Path | None = None) -> str:
    assert folder is not None
    file = folder / "change.toml"
    file.write_text(f"[[rule]]\n{rule}\n", encoding="utf-8")
    return load_change(str(file))(page)


@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        ('select = "button"\ntext = "Order & pay"', "Buy <i>now</i>", "Order &amp; pay"),
        ('select = "p"\nreplace = { "$4" = "$5", "& up" = "and up" }', "$4</b> &amp; up", "$5</b> and up"),
        ('select = "div"\nreplace = { Buy = "Order" }', "Buy <i>", "Order <i>"),
        ('select = "[name$=\'.buy\']"\nname = "order"', '"list.tea.buy"', '"list.tea.order"'),
        (
            'select = "[name=q]"\nset = { value = "tea", title = "Look for" }',
            'value=""/>',
            'value="tea" title="Look for"/>',
        ),
        ('select = "a"\nset = { title = \'say "no"\' }', "title='say \"hi\"'", 'title="say &quot;no&quot;"'),
        ('select = "p"\ndrop = true', "<p>Green tea <b>$4</b> &amp; up</p>", ""),
        ('select = "footer"\ninsert_before = "<em>Free shipping</em>"', "<footer>", "<em>Free shipping</em><footer>"),
        ('select = "b"\ninsert_after = " only"', "<b>$4</b>", "<b>$4</b> only"),
        ('select = "title"\ntext = "Coffee"', "Tea &amp; more", "Coffee"),
    ],
)
def test_a_rule_changes_what_it_selects_and_no_other_byte(rule: str, old: str, new: str, tmp_path: Path) -> None:
    assert PAGE.count(old) == 1
    assert changed(rule, folder=tmp_path) == PAGE.replace(old, new)


def test_elements_are_moved_before_and_after_others(tmp_path: Path) -> None:
    page = "<ul><li>a</li><li class=x>b</li><li>c</li><li class=x>d</li></ul>"
    first = changed('select = ".x"\nmove_before = "li"', page, tmp_path)
    assert first == "<ul><li class=x>b</li><li class=x>d</li><li>a</li><li>c</li></ul>"
    assert changed('select = ".x"\nmove_before = "li"', first, tmp_path) == first  # it is there already
    last = changed('select = "li:first-child"\nmove_after = "li:last-child"', page, tmp_path)
    assert last == "<ul><li class=x>b</li><li>c</li><li class=x>d</li><li>a</li></ul>"
    with pytest.raises(BadConfig, match="into what it holds"):
        changed('select = "ul"\nmove_before = ".x"', page, tmp_path)


def test_of_elements_inside_one_another_the_outer_goes_and_each_gets_its_attribute(tmp_path: Path) -> None:
    page = "<div><div>a</div></div>b"
    assert changed('select = "div"\ndrop = true', page, tmp_path) == "b"
    assert (
        changed('select = "div"\nset = { title = "t" }', page, tmp_path)
        == '<div title="t"><div title="t">a</div></div>b'
    )


def test_rules_follow_one_another_and_tell_which_did_nothing(tmp_path: Path) -> None:
    file = tmp_path / "change.toml"
    file.write_text(
        '[[rule]]\nselect = "footer"\ntext = "Bye"\n[[rule]]\nselect = "footer"\nset = { title = "x" }\n'
        '[[rule]]\nselect = "aside"\ndrop = true\n',
        encoding="utf-8",
    )
    change = load_change(str(file))
    assert change(PAGE) == PAGE.replace("<footer>Buy with us", '<footer title="x">Bye')
    assert change.unmatched == [f"rule 3 of {file} (select = 'aside') changes no page"]


DEMO_PAGES = [step.page for session in generate_sessions(6, 3, "compact") for step in session.steps]
TAGS = ("div", "a", "span", "button", "b")
NESTED = st.recursive(
    st.text("xyz &<>\"'", max_size=4).map(lambda text: text.replace("&", "&amp;").replace("<", "&lt;")),
    lambda inner: st.tuples(st.sampled_from(("div", "span", "b")), st.lists(inner, max_size=3)).map(
        lambda made: f"<{made[0]} class='k'>{''.join(made[1])}</{made[0]}>"
    ),
    max_leaves=12,
)


PAGES = st.one_of(NESTED.map(lambda inner: f"<body>{inner}</body>"), st.sampled_from(DEMO_PAGES))


@settings(deadline=None)
@given(page=PAGES, tag=st.sampled_from(TAGS))
def test_what_is_left_is_what_a_parser_that_drops_the_same_elements_leaves(page: str, tag: str) -> None:
    ours = RuleChange("a rule", (Rule(select=tag, drop=True),))(page)
    document = LexborHTMLParser(page)
    while found := document.css_first(tag):
        found.decompose()
    assert LexborHTMLParser(ours).html == document.html


def test_an_element_without_an_end_tag_is_refused_and_not_guessed(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"rule 1 of .*no end tag of its own"):
        changed('select = "li"\ndrop = true', "<ul><li>a<li>b</ul>", tmp_path)
    assert changed('select = "p"\ndrop = true', "<ul><li>a<li>b</ul><p>c</p>", tmp_path) == "<ul><li>a<li>b</ul>"


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ('selct = "a"\ntext = "b"', "unknown key 'rule[0].selct'. Did you mean 'select'?"),
        ('select = "a"', "does nothing: it must do one thing of text, replace, set, name, drop"),
        ('select = "a"\ntext = "b"\ndrop = true', "does text, drop: it must do one thing"),
        ('select = "[["\ntext = "b"', "'[[' is no CSS selector"),
        ('select = "input"\ntext = "b"', "holds no text: set"),
        ('select = ', "change"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_is_told_with_its_place(rule: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=re.escape(said)):
        changed(rule, folder=tmp_path)


FUNCTIONS = """
def cheaper(page):
    return page.replace("$4", "$3")

def broken(page):
    return page.index("no such thing")

def silent(page):
    pass

def of_two(page, shop):
    return page
"""


def test_a_function_is_a_change_and_what_is_none_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FUNCTIONS, encoding="utf-8")
    assert load_change(f"{file}:cheaper")(PAGE) == PAGE.replace("$4", "$3")
    with pytest.raises(BadConfig, match="Did you mean 'cheaper'"):
        load_change(f"{file}:cheper")
    with pytest.raises(BadConfig, match=r"def change\(page: str\) -> str"):
        load_change(f"{file}:of_two")
    with pytest.raises(BadConfig, match="broken' failed: ValueError"):
        load_change(f"{file}:broken")(PAGE)
    with pytest.raises(BadConfig, match="gave NoneType"):
        load_change(f"{file}:silent")(PAGE)
    for nothing in (f"{tmp_path}/gone.py:cheaper", "no_such_module:cheaper", f"{tmp_path}/gone.toml", "cheaper"):
        with pytest.raises(BadConfig):
            load_change(nothing)
