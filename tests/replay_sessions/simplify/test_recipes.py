"""Recipes: what their rules do, and what is said of those that do not read."""

import re
from pathlib import Path

import pytest

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.simplify import SimplifiedPage, load_recipe, simplify

_DOCUMENT = Path(__file__).parents[3] / "docs" / "recipes.md"
_PAGE = """
<div id="filters"><a href="?c=red">Red</a></div>
<div class="searchResults_a1">
  <div class="productCard_3xp0y"><p class="productName_9z"><a href="/1">Red kettle 1.7 l</a></p>
    <button class="round addToCart_q2"><svg></svg></button></div>
  <div class="productCard_3xp0y"><p class="productName_9z"><a href="/2">Blue kettle</a></p>
    <button class="round addToCart_q2"><svg></svg></button></div>
  <div class="slick-cloned"><a href="/1">Red kettle 1.7 l</a></div>
</div>
<p>By <span class="review-author">Bo</span></p>
"""


def simplified(page: str, rules: str, folder: Path) -> SimplifiedPage:
    file = folder / "shop.toml"
    file.write_text(rules, "utf-8")
    return simplify(page, load_recipe(file))


def test_the_documented_recipe_gives_the_documented_result(tmp_path):
    rules = "\n".join(re.findall(r"```toml\n(.*?)```", _DOCUMENT.read_text("utf-8"), re.DOTALL))
    page = simplified(_PAGE, rules, tmp_path)
    assert [element.name for element in page.elements] == [
        "refinements.red",
        "search_results.red_kettle_1_7_l.view_product",
        "search_results.red_kettle_1_7_l.add_to_cart",
        "search_results.blue_kettle.view_product",
        "search_results.blue_kettle.add_to_cart",
    ]
    assert "By [name]" in page.html


def test_the_document_lists_every_key_of_a_rule():
    rows = re.findall(r"^\| `(\w+)` \|", _DOCUMENT.read_text("utf-8"), re.MULTILINE)
    assert rows == [*type(load_recipe("generic").rules[0]).__struct_fields__]


@pytest.mark.parametrize(
    "selector",
    [
        "[class*=Card]",
        "[class^=product]",
        "[class$='_x7']",
        "[class*=Card][data-id]",
        "div[class*=Card]",
        "[data-id='7']",
        "p + div, .x",
        "body > :nth-child(2)",
    ],
)
def test_selectors_ask_for_parts_of_classes_and_other_attributes(selector, tmp_path):
    rules = f'[[rule]]\nselect = "{selector}"\nname = "card"'
    page = '<p class="other_x"><a href=x>Other</a></p><div class="productCard_x7" data-id=7>Red</div>'
    assert [element.name for element in simplified(page, rules, tmp_path).elements] == ["other", "card"]


def test_class_conditions_hold_for_descendants(tmp_path):
    rules = '[[rule]]\nselect = "[class*=Card] [class*=buy]"\nname = "buy"'
    page = "<div class=aCard><i class=xbuy>1</i></div><i class=xbuy>2</i>"
    assert [element.text for element in simplified(page, rules, tmp_path).elements] == ["1"]


def test_hidden_elements_are_shown_where_a_recipe_keeps_them(tmp_path):
    assert "shown" in simplified("<p hidden class=x>shown</p>", '[[rule]]\nselect = ".x"\nkeep = true', tmp_path).html


def test_a_recipe_overrides_the_recipe_below(tmp_path):
    page = "<li><h3>Kettle</h3><a href=x>Buy</a></li>"
    rules = '[[rule]]\nselect = "li"\ncard = ""'
    assert [element.name for element in simplified(page, "", tmp_path).elements] == ["kettle.buy"]
    assert [element.name for element in simplified(page, rules, tmp_path).elements] == ["buy"]


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("rule = 3", "array"),
        ('[[rule]]\nselct = "a"', "selct"),
        ('[[rules]]\nselect = "a"', "rules"),
        ('[[rule]]\nselect = "a >"\nscope = "x"', "'a >' in rule 1"),
        ('[[rule]]\nselect = "a:unheard"\nscope = "x"', "'a:unheard' in rule 1"),
        ('[[rule]]\nscope = "x"', "'' in rule 1"),
        ('[[rule]]\nselect = "a"\nprivate = "age"', "private"),
        ('[[rule]]\nselect = "a"\nscope = "My Shop"', "write 'my_shop'"),
        ('extends = "amazn"', "Did you mean 'amazon'"),
    ],
)
def test_a_recipe_that_does_not_read_is_told_why(rules, said, tmp_path):
    with pytest.raises(BadConfig, match=re.escape(said)):
        simplified("<p>x</p>", rules, tmp_path)


def test_an_unknown_recipe_is_told_which_there_are():
    with pytest.raises(BadConfig, match="Did you mean 'amazon'"):
        load_recipe("amazn")


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (("Delivering to Springfield 62704", "Update location"), "[address] Update location"),
        (("Lieferung nach Berlin 10115", "Standort aktualisieren"), "[address] Standort aktualisieren"),
        (("Delivering to Dublin", "Update location"), "[address] Update location"),
        (("Deliver to Anna", "Springfield 62704"), "Deliver to Anna [address]"),
    ],
)
def test_amazons_location_goes_from_either_line(lines, shown):
    spans = " ".join(f"<span id=glow-ingress-line{number}>{line}</span>" for number, line in enumerate(lines, 1))
    page = simplify(f"<div id=nav-global-location-slot><a href=#>{spans}</a></div>", "amazon")
    assert [element.text for element in page.elements] == [shown]
