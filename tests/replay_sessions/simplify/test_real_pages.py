"""Real pages of Amazon and other shops: names, titles, prices, size. What of them is kept at all is compared with a
browser, in `test_browser_visibility`.

Titles and prices that the page itself does not show (`display:none`, only in its JSON) are not shown either.
"""

import gzip
import html
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from bs4 import BeautifulSoup

from replay_sessions.simplify import simplify
from replay_sessions.simplify.recipes import find_recipe
from replay_sessions.simplify.targets import Labels
from replay_sessions.simplify.trees import parse
from replay_sessions.simplify.walk import Walk

pytestmark = pytest.mark.slow

_CONTROLS = {"a", "button", "input", "select", "textarea"}
_NAMED = re.compile(r'<(\w+) name="([^"]+)"')
_PRICE = re.compile(r"([$£€]\s?)\d[\d.,]*|\d+[.,]\d\d(?=\s?€)")
_CARDS = re.compile(r'<li[^>]*class="[^"]*a-carousel-card[^"]*"|<div[^>]*class="[^"]*s-result-item[^"]*"')


@pytest.fixture(scope="module")
def pages(shared_data) -> dict[str, bytes]:
    files = sorted((shared_data / "raw_pages").rglob("*.html.gz"))
    return {file.name[:12]: gzip.decompress(file.read_bytes()) for file in files}


@pytest.fixture(scope="module")
def amazon_pages(pages) -> dict[str, str]:
    found = {name: page.decode() for name, page in pages.items() if find_recipe(page).name == "amazon"}
    assert len(found) >= 10
    return found


def names(page: str) -> list[str]:
    return [name for _, name in _NAMED.findall(simplify(page).html)]


def test_every_control_that_is_kept_has_a_name_of_its_own(pages):
    assert len(pages) >= 70
    for page_name, page in pages.items():
        recipe = find_recipe(page)
        document, landmarks, styles = parse(page)
        walk = Walk(recipe.rules_on(document), Labels(landmarks.labelled), styles, private_data=False)
        walk.run(document.body.first_child if document.body is not None else None)
        named = _NAMED.findall(simplify(page).html)
        assert len({name for _, name in named}) == len(named), page_name
        written = Counter(tag for tag, _ in named if tag in _CONTROLS)
        assert written == Counter(target.tag for target in walk.targets if target.tag in _CONTROLS), page_name


def test_titles_and_prices_of_products_survive(pages):
    with_title = with_price = 0
    for page_name, page in pages.items():
        soup = BeautifulSoup(page, "lxml")
        shown = letters(html.unescape(re.sub(r"<[^>]*>", " ", simplify(page).html)))
        prices = [price for price in given_prices(soup) if price]
        for hidden in soup.select("[hidden], [aria-hidden=true], [style*='display:none'], [style*='display: none'], "
                                  ".aok-hidden, .a-hidden, .a-popover-preload, script, style, template"):  # fmt: skip
            hidden.extract()
        text = letters(soup.get_text(" "))
        titles = [letters(heading.get_text(" ")) for heading in soup.find_all("h1")]
        assert all(title in shown for title in titles), page_name
        visible = [price for price in prices if price in text]
        assert all(price in shown for price in visible), page_name
        with_title += any(titles)
        with_price += bool(visible)
    assert with_title >= 0.8 * len(pages)
    assert with_price >= 0.6 * len(pages)


def letters(text: str) -> str:
    """Text without what reading it in pieces may change: blanks and punctuation."""
    return re.sub(r"[\W_]", "", text).lower()


def given_prices(soup: BeautifulSoup) -> Iterator[str]:
    """What a product page says to machines about its price: whole part and, if there are any, cents."""
    found = [
        tag.get("content") or tag.get_text() for tag in soup.select("[itemprop=price], meta[property$='price:amount']")
    ]
    found += [tag.get_text() for tag in soup.select("#price_inside_buybox, #priceblock_ourprice")]
    for script in soup.find_all("script", type="application/ld+json"):
        try:
            described = json.loads(script.string or "", strict=False)
        except ValueError:
            continue
        found += [
            part["price"] for part in parts_of(described) if "Offer" in str(part.get("@type")) and "price" in part
        ]
    for price in found:
        digits = re.sub(r"\D", "", re.sub(r"[.,]0{1,2}\s*$", "", str(price).strip()))
        yield digits if len(digits) > 1 else ""


def parts_of(described: Any) -> Iterator[dict[str, Any]]:
    if isinstance(described, dict):
        yield described
        described = list(described.values())
    if isinstance(described, list):
        for part in described:
            yield from parts_of(part)


def test_output_is_3_to_15_percent_of_the_input_and_the_same_on_every_run(pages):
    results = {name: simplify(page).html for name, page in pages.items()}
    assert {name: simplify(page).html for name, page in pages.items()} == results
    assert 0.03 < sum(map(len, results.values())) / sum(map(len, pages.values())) < 0.15


def test_other_prices_leave_the_names_of_real_pages_as_they_are(amazon_pages):
    for page_name, page in amazon_pages.items():
        changer = random.Random(page_name)

        def other(match: re.Match[str], changer: random.Random = changer) -> str:
            return re.sub(r"\d", lambda _: str(changer.randint(1, 9)), match[0])

        changed = _PRICE.sub(other, page)
        assert changed != page
        assert names(changed) == names(page), page_name


def test_a_card_added_anywhere_leaves_the_other_names_of_real_pages_as_they_are(amazon_pages):
    tried = 0
    for page_name, page in amazon_pages.items():
        places = [match.start() for match in _CARDS.finditer(page)]
        before = names(page)
        for place in random.Random(page_name).sample(places, min(5, len(places))):
            start = _CARDS.match(page, place)
            end = "</div>" if start[0].startswith("<div") else "</li>"
            title = "Quixotic zeppelin 77"
            card = (
                f'{start[0]}><a href=x><img alt="{title}"></a><h2><a href=x>{title}</a></h2><button>Add</button>{end}'
            )
            after = names(page[:place] + card + page[place:])
            known = set(before)
            assert [name for name in after if name in known] == before, (page_name, place)
            tried += len(after) > len(before)
    assert tried >= 20
