"""Texts and pages made to take long: time stays in proportion to their length."""

import functools
import itertools
import time
from collections.abc import Callable

import pytest

from replay_sessions.foundation.errors import BadSession
from replay_sessions.private_data import find_private_data
from replay_sessions.simplify import simplify

# What each pattern would try again and again if it could: runs of what it is made of, without what it ends with.
_REPEATED = [
    "1", "1-1-", "1 ", "(1", "+1", "A", "A-A-", "Aa ", "a", "a.a@", "@", "a-@", "xx ", "１２３", "DE11 ", "SSN ",
    "SSN 1 ", "$1.11", "1.11.", "( 1", "(", ": ", "\u200b ", "&", "&lt;", '"',
]  # fmt: skip
_NUMBERED: list[Callable[[int], str]] = [
    lambda number: f"a{number}@example.com ",
    lambda number: f"(0{number % 97 + 10}) {number % 9973:04d}-{number * 7919 % 10_000:04d}, ",
    lambda number: f"+49 30 {number:07d}, ",
    lambda number: f"DE{number % 90 + 10}{number:X} ",
]
_ONCE = ["SSN {}a", "DE11{}a", "{}@", "a@{}"]


@functools.cache
def _texts(length: int) -> dict[str, str]:
    texts = {repr(part): part * (length // len(part)) for part in _REPEATED}
    for number, write in enumerate(_NUMBERED):
        parts: list[str] = []
        size = 0
        for count in itertools.count():
            parts.append(write(count))
            size += len(parts[-1])
            if size > length:
                break
        texts[f"numbered {number}: {parts[0]}"] = "".join(parts)
    return texts | {template: template.format("1" * length) for template in _ONCE}


def _seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def test_no_text_of_twenty_kilobytes_takes_a_second():
    for name, text in _texts(20_000).items():
        assert _seconds(lambda text=text: simplify(f"<h1>x</h1><p>{text}</p><a href=x>{text}</a>")) < 3, name
        assert _seconds(lambda text=text: find_private_data(text)) < 3, name


@pytest.mark.slow
@pytest.mark.parametrize("name", _texts(1))
def test_no_text_of_a_megabyte_takes_ten_seconds(name):
    texts = dict(zip(_texts(1), _texts(1_000_000).values(), strict=True))
    assert _seconds(lambda: simplify(f"<h1>x</h1><p>{texts[name]}</p>")) < 10
    assert _seconds(lambda: simplify(f"<a href=x>{texts[name]}</a>")) < 10


@pytest.mark.parametrize(
    "page",
    [
        "<div role=button>" * 4_000 + "x " * 40_000,
        "<span role=checkbox>" * 4_000,
        "".join(f"<div id=a{number}>" for number in range(4_000))
        + "x " * 100_000
        + "".join(f"<i aria-labelledby=a{number}></i>" for number in range(4_000)),
        "<label>" * 2_000 + "<a href=x>a</a>" * 4_000,
        "<nav><header><footer>" * 700 + "<a href=x>a</a>" * 3_000,
        "<div aria-hidden=true>" * 5_000 + "<p>a</p>" * 9_000 + "<h1>a</h1>",
        "<section><h2>a</h2>" * 2_500 + "<a href=x>a</a>" * 9_000,
        "<button><svg>" * 5_000,
        "<select>" + "<option>a" * 9_000,
    ],
    ids=["targets", "empty targets", "labels by id", "labels", "containers", "dialogs", "cards", "drawings", "options"],
)
def test_deeply_nested_pages_take_seconds_at_most(page):
    assert _seconds(lambda: simplify(page)) < 3


def test_long_values_and_comparisons_in_scripts_are_no_reason_to_turn_a_page_away():
    page = f"<div data-state='{'a b ' * 50_000}'>shown</div><script>{'if(a<b)c();' * 30_000}</script>"
    assert "shown" in simplify(page).html


@pytest.mark.parametrize(
    ("before", "part", "within", "after"),
    [
        ("", "a{ }", "display:none", ""),
        ("", ":not( )", "a", "{display:none}"),
        ("@media ", "( )", "min-width:1px", "{a{display:none}}"),
        ("@supports ", "( )", "display:grid", "{a{display:none}}"),
        ("a{display:", "var(--x, )", "none", "}"),
        ("", "[ ]", "a", "{display:none}"),
    ],
)
def test_styles_that_nest_too_deeply_do_not_count_and_the_others_do(before, part, within, after):
    opening, closing = part.split()
    sheet = f"{before}{opening * 5_000}{within}{closing * 5_000}{after}"
    page = f"<style>{sheet}</style><style>.b{{display:none}}</style><a href=x>x</a><a href=y class=b>y</a>"
    assert [element.name for element in simplify(page).elements] == ["x"]


@pytest.mark.parametrize("attribute", ["<a style='display:{}'>x</a>", "<style media='{}'>b{{}}</style><a>x</a>"])
def test_attributes_that_nest_too_deeply_do_not_count(attribute):
    assert "x" in simplify(attribute.format("(" * 5_000 + ")" * 5_000)).html


def test_elements_that_nest_too_deeply_are_rejected_and_many_are_not():
    with pytest.raises(BadSession, match="left open"):
        simplify("<div>" * 100_000)
    assert len(simplify("<ul>" + "<li><img src=x>x" * 11_000 + "<a href=x>x</a>").elements) == 1
