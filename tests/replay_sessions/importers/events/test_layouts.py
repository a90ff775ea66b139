"""The mappings that are included, on small files in the public layouts (tests/fixtures/event_layouts)."""

from pathlib import Path

import pytest

from replay_sessions import SessionStore
from replay_sessions.foundation.config_errors import toml_names
from replay_sessions.importers.events.importer import EventsImporter, EventsOptions
from replay_sessions.importers.events.mapping import MAPPINGS
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.schema import describe_action

LAYOUTS = Path(__file__).parents[3] / "fixtures" / "event_layouts"
SEARCH, CLICK, ADD = "type 'mug' into search_input", "click results.red_mug.view_product", "click product.add_to_cart"
CART, CHECKOUT, BUY = "click nav_bar.cart", "click cart.checkout", "click checkout.place_order (purchase)"
BUY_NOW = "click product.place_order (purchase)"
EXPECTED = {
    "clothing_shop": [
        ["click results.a1.view_product", "click menu.trousers_page_1", "click results.a2.view_product", "terminate"]
    ]
    * 5,
    "ga4_ecommerce": [[SEARCH, CLICK, ADD, CART, CHECKOUT, BUY]],
    "merchandise": [[SEARCH, "click results.red_mug.quickview", ADD, CART, CHECKOUT, BUY]],
    "otto": [[ADD, BUY_NOW], ["terminate"]],
    "rees46": [[ADD, BUY_NOW], ["terminate"]],
    "retailrocket": [[ADD, BUY_NOW], ["terminate"]],
    "segment": [[SEARCH, CLICK, ADD, CART, CHECKOUT, BUY]],
    "shopify_pixel": [[SEARCH, CLICK, ADD, CART, CHECKOUT, BUY]],
    "snowplow_ecommerce": [["click menu.results", CLICK, ADD, "click product.checkout", BUY]],
}


def test_every_mapping_has_a_layout():
    assert set(toml_names(MAPPINGS)) == EXPECTED.keys() == {path.stem for path in LAYOUTS.iterdir()}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_public_layout_is_read_whole(tmp_path, name):
    (file,) = LAYOUTS.glob(f"{name}.*")
    importer = EventsImporter(file, EventsOptions(mapping=name))
    run_import(importer, tmp_path / "store")
    store = SessionStore.open(tmp_path / "store")
    assert [[describe_action(step.action) for step in session.steps] for session in store.sessions()] == EXPECTED[name]
    assert ["no currency" in line for line in importer.warnings] == [True] * (name == "rees46")
    assert store.manifest.rejected == 0
    assert all("100.0%" in line for line in importer.report if "became" in line)
    assert "(not set)" not in "".join(step.page for session in store.sessions() for step in session.steps)
