"""Small logs that went wrong once, each with a README that says what is right (tests/fixtures/cases)."""

from pathlib import Path

import pytest

from replay_sessions import Session, SessionStore, find_elements
from replay_sessions.importers.events.importer import EventsImporter, EventsOptions
from replay_sessions.importers.running.run_import import run_import
from tests.replay_sessions.importers.test_cases import words_of

CASES = Path(__file__).parents[3] / "fixtures" / "cases"
BUYS = [
    "click results.mug_number_2.view_product",
    "click product.add_to_cart",
    "click nav_bar.cart",
    "click cart.checkout",
    "click checkout.place_order (purchase)",
]


def sessions_of(source: str, mapping: str, out: Path, **options: float) -> list[Session]:
    """The sessions of a case; a mapping that is a file lies beside the source."""
    path = CASES / source
    mapping = str(path.parent / mapping) if mapping.endswith(".toml") else mapping
    run_import(EventsImporter(path, EventsOptions(mapping=mapping, **options)), out / "store")
    return list(SessionStore.open(out / "store").sessions())


def pages_of(sessions: list[Session]) -> list[str]:
    return [step.page for session in sessions for step in session.steps]


@pytest.mark.parametrize("mapping", ["segment2.toml", "segment"])
def test_products_stand_in_several_places(tmp_path, mapping):
    (session,) = sessions_of("03-items-one-path/segment.jsonl", mapping, tmp_path)
    assert words_of(session) == BUYS


def test_products_of_a_shopify_pixel_are_objects_and_lists(tmp_path):
    (session,) = sessions_of("03-items-one-path/shopify_pixel.jsonl", "shopify_pixel", tmp_path)
    assert words_of(session) == [*BUYS[:3], "type 'blue mug' into search_input", "click search.checkout", BUYS[-1]]
    assert "€12.00" in session.steps[1].page


def test_a_purchase_behind_the_thank_you_page_is_kept(tmp_path):
    sessions = sessions_of("04-ga4-purchase-thank-you/ga4_purchase.jsonl", "ga4_ecommerce", tmp_path)
    assert [words_of(session) for session in sessions] == [BUYS] * 3
    menu = {element.text for page in pages_of(sessions) for element in find_elements(page) if "menu." in element.name}
    assert menu == {"Mugs"}
    assert all("Mug number 2" in session.steps[-1].page for session in sessions)


def test_tracking_parameters_make_no_pages(tmp_path):
    sessions = sessions_of("05-events-tracking-parameters/ga4_utm.jsonl", "ga4_ecommerce", tmp_path)
    assert {words_of(session)[0] for session in sessions} == {"click menu.mugs"}
    names = {element.name for element in find_elements(sessions[0].steps[0].page)}
    assert names == {"search_input", "nav_bar.cart", "menu.home", "menu.mugs"}


def test_duplicates_count_once(tmp_path):
    first, second = sessions_of("06-events-duplicates/ga4_dup.jsonl", "ga4_ecommerce", tmp_path)
    assert words_of(first) == words_of(second) == [*BUYS[:2], "terminate"]
    assert SessionStore.open(tmp_path / "store").manifest.left_out_steps == {"duplicate": 6}


@pytest.mark.parametrize("mapping", ["rees46.toml", "rees46"])
def test_a_purchase_needs_no_checkout_page(tmp_path, mapping):
    carts, buys = sessions_of("07-purchase-without-checkout-page/rees46.csv", mapping, tmp_path)
    assert words_of(carts) == ["click product.add_to_cart", "terminate"]
    assert words_of(buys)[-1].endswith("(purchase)") and buys.steps[-1].gap == 1


@pytest.mark.parametrize("mapping", ["rees46", "rees46_b.toml"])
def test_no_cart_and_no_purchase_is_lost(tmp_path, mapping):
    sessions = sessions_of("07-purchase-without-checkout-page/rees46_120.csv", mapping, tmp_path)
    words = [word for session in sessions for word in words_of(session)]
    lines = (CASES / "07-purchase-without-checkout-page" / "rees46_120.csv").read_text().splitlines()
    assert sum("add_to_cart" in word for word in words) == sum(",cart," in line for line in lines)
    assert sum("(purchase)" in word for word in words) == sum(",purchase," in line for line in lines)


def test_values_not_set_are_left_out(tmp_path):
    sessions = sessions_of("10-events-not-set-price-currency/ga4_ok.jsonl", "ga4_ecommerce", tmp_path)
    assert not any("(not set)" in page for page in pages_of(sessions))
    assert all(words_of(session) == [*BUYS[:2], "terminate"] for session in sessions)


def test_prices_are_read_in_any_notation(tmp_path):
    sessions = sessions_of("10-events-not-set-price-currency/prices.csv", "prices.toml", tmp_path)
    prices = [session.steps[0].page.partition('class="price">')[2].partition("<")[0] for session in sessions]
    assert prices == ["12.90", "$12.90", "1,299.00", "12.90"]
    assert {words_of(session)[0] for session in sessions} == {"click product.add_to_cart"}


def test_a_shop_without_a_menu_has_no_element_of_that_name(tmp_path):
    sessions = sessions_of("15-empty-menu-is-an-element/otto.jsonl", "otto.toml", tmp_path)
    names = {element.name for element in find_elements(sessions[1].steps[0].page)}
    # The other session ordered on such a page: all of them have that button, or its presence would tell of the order.
    assert names == {"search_input", "nav_bar.cart", "product.add_to_cart", "product.place_order"}


@pytest.mark.parametrize("mapping", ["retailrocket.toml", "retailrocket"])
def test_a_pause_splits_a_visitor(tmp_path, mapping):
    sessions = sessions_of("16-events-without-session-ids/events.csv", mapping, tmp_path, idle_minutes=30)
    assert [session.session_id for session in sessions if session.user_id == "257597"] == ["257597", "257597 (2)"]
    assert words_of(sessions[0])[-1].endswith("(purchase)")


def test_empty_cells_fall_through_and_page_views_need_no_product(tmp_path):
    (session,) = sessions_of("18-csv-empty-cell-fallback/events.csv", "mapping.toml", tmp_path)
    assert words_of(session) == ["click product.add_to_cart", "click menu.c_mugs", "terminate"]
    assert SessionStore.open(tmp_path / "store").manifest.rejected == 0
