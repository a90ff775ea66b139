"""Rules hide, move, reword and scale prices; a function takes a page and gives one; all else is an error."""

from pathlib import Path

import pytest

from benchmarks.ab.pages.change import load_change, written_out
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.foundation.errors import BadConfig

PAGE = written_out(
    '<header><a name="nav.cart" title="Buy">Cart</a></header>'
    '<ul name="list"><li>Green tea <b>$4</b> &amp; up</li><li class="x">Kettle $1,234.50</li></ul>'
    '<button name="list.tea.buy">Buy <i>now</i></button><footer>Buy with us</footer>'
)


def changed(rules: str, folder: Path, page: str = PAGE) -> str:
    file = folder / "change.toml"
    file.write_text(rules, encoding="utf-8")
    return load_change(str(file))(page)


@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        ('select = "footer"\nhide = true', "<footer>Buy with us</footer>", ""),
        ('select = "li"\nreplace = { "$4" = "$5", "& up" = "<more>" }', "$4</b> &amp; up", "$5</b> &lt;more&gt;"),
        ('select = "button"\nreplace = { Buy = "Order" }', "Buy <i>now", "Order <i>now"),
        ('select = "li, b"\nscale_prices = 1.5', "$4", "$6"),
        ('select = ".x"\nscale_prices = 1.1', "$1,234.50", "$1,357.95"),
    ],
)
def test_a_rule_changes_selected_elements_alone(rule, old, new, tmp_path):
    found = changed(f"[[rule]]\n{rule}\n", tmp_path)
    expected = PAGE.replace(old, new)
    if "li, b" in rule:  # both prices lie in what is selected, each is scaled once
        expected = expected.replace("$1,234.50", "$1,851.75")
    assert found == expected != PAGE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("€ 9,90", "€ 10,89"),
        ("70,95 € 94,95 €", "78,05 € 104,45 €"),
        ("£5, £10 or £1,250", "£5.50, £11 or £1,375"),
        ("1.299,00 € (1.299 €, 1 299 zł)", "1.428,90 € (1.429 €, 1 429 zł)"),
        ("CHF 12.90 (1'234.50 CHF)", "CHF 14.19 (1'357.95 CHF)"),
        ("₹999, 5 ₽", "₹1099, 5,50 ₽"),
        ("12 x 250 g", "12 x 250 g"),
    ],
)
def test_a_scaled_price_keeps_its_notation(before, after, tmp_path):
    page = written_out("<p>{}</p>")
    rule = '[[rule]]\nselect = "p"\nscale_prices = 1.1'
    assert changed(rule, tmp_path, page.replace("{}", before)) == page.replace("{}", after)


def test_elements_go_to_the_front_in_their_order_and_stay_there(tmp_path):
    page = written_out('<ul><li>a</li><li class="x">b</li><li>c</li><li class="x">d</li></ul>')
    rule = '[[rule]]\nselect = "li:last-child"\nfirst = true\n[[rule]]\nselect = ".x"\nhide = true'
    assert "<ul><li>a</li><li>c</li></ul>" in changed(rule, tmp_path, page)
    first = changed('[[rule]]\nselect = "li:last-child"\nfirst = true', tmp_path, page)
    assert '<ul><li class="x">d</li><li>a</li>' in first
    assert changed('[[rule]]\nselect = "li:first-child"\nfirst = true', tmp_path, page) == page
    both = changed('[[rule]]\nselect = ".x"\nfirst = true', tmp_path, page)
    assert '<ul><li class="x">b</li><li class="x">d</li><li>a</li><li>c</li></ul>' in both


def test_rules_that_select_nothing_leave_every_page_of_the_demo_shop_as_it_is(tmp_path):
    for session in generate_sessions(3, 3, "compact"):
        for step in session.steps:
            page = written_out(step.page)
            assert changed('[[rule]]\nselect = ".none"\nhide = true', tmp_path, page) == page


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ('[[rule]]\nselct = "a"\nhide = true', "Did you mean 'select'?"),
        ('[[rule]]\nselect = "a"', "must do one thing"),
        ('[[rule]]\nselect = "a"\nhide = true\nfirst = true', "must do one thing"),
        ('[[rule]]\nselect = "[["\nhide = true', "no CSS selector"),
        ("rule = 3", "change.toml"),
        ("[[rule", "change.toml"),
    ],
)
def test_a_rule_that_cannot_be_is_an_error(rules, words, tmp_path):
    with pytest.raises(BadConfig) as error:
        changed(rules, tmp_path)
    assert words in str(error.value)


FUNCTIONS = """
def cheaper(page):
    return page.replace("$4", "$3")

def broken(page):
    return page.index("no such thing")

def silent(page):
    pass
"""


def test_a_function_is_a_change_and_its_faults_are_errors(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(FUNCTIONS, encoding="utf-8")
    assert load_change(f"{file}:cheaper")(PAGE) == PAGE.replace("$4", "$3")
    with pytest.raises(BadConfig, match="Did you mean 'cheaper'"):
        load_change(f"{file}:cheper")
    for name in ("broken", "silent"):
        with pytest.raises(BadConfig, match=name):
            load_change(f"{file}:{name}")(PAGE)
    for nothing in (f"{tmp_path}/gone.py:cheaper", "no_such_module:cheaper", f"{tmp_path}/gone.toml", "cheaper"):
        with pytest.raises(BadConfig):
            load_change(nothing)
