"""The built site in Chromium, opened from its folder: search answers, nothing is asked of the network, phones fit."""

import pytest

from tests.oracles.browser import browser as browser
from tests.processes import ROOT

SITE = ROOT / "site"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="no site: make docs"),
]


@pytest.mark.parametrize("name", ["index.html", "reference/env.html"])
def test_search_finds_pages_of_a_site_that_is_opened_from_its_folder(browser, name):
    requested: list[str] = []
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        page = context.new_page()
        page.on("request", lambda request: requested.append(request.url))
        page.goto((SITE / name).as_uri())
        page.fill("input.md-search__input", "num_generations")
        page.wait_for_selector(".md-search-result__item", timeout=60_000)
        links = page.eval_on_selector_all(".md-search-result__link", "links => links.map(link => link.href)")
    assert any(link.startswith((SITE / "hyperparameters.html").as_uri()) for link in links)
    assert all(url.startswith("file:") for url in requested)


def test_wide_tables_and_help_do_not_widen_the_page_on_a_phone(browser):
    with browser.new_context(viewport={"width": 390, "height": 844}) as context:
        page = context.new_page()
        for name in ("hyperparameters.html", "command_line.html"):
            page.goto((SITE / name).as_uri(), wait_until="domcontentloaded")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
