"""The messages of an import about a mapping that does not fit, refused consent, and the kinds of scored actions."""

import pytest

from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.events.importer import EventsImporter, EventsOptions
from tests.replay_sessions.importers.events.test_cases import CASES
from tests.replay_sessions.importers.events.test_events import KETTLE, flat, ga4, imported
from tests.replay_sessions.importers.events.test_layouts import LAYOUTS
from tests.stores import read_rejected

REES46 = CASES / "07-purchase-without-checkout-page" / "rees46.csv"


def open_log(source, mapping):
    return EventsImporter(source, EventsOptions(mapping=mapping))


def test_a_wrong_delimiter_is_named(tmp_path):
    (tmp_path / "log.csv").write_text(REES46.read_text().replace(",", ";"))
    with pytest.raises(ImportFailed, match=r"seems to be ';', and the mapping says ','.*delimiter = .;"):
        open_log(tmp_path / "log.csv", "rees46")


@pytest.mark.parametrize(("mapping", "field"), [("ga4_ecommerce", "event_name"), ("otto", "events")])
def test_a_wrong_mapping_is_named_with_the_one_that_fits(mapping, field):
    with pytest.raises(ImportFailed, match=rf"field '{field}' is empty.*'event_type'.*does not fit.*--mapping rees46"):
        open_log(REES46, mapping)


def test_a_mapping_that_lists_no_type_of_the_log_is_named(tmp_path):
    with pytest.raises(ImportFailed, match=r"no event is of a type in .*'see', .*the log has 'VIEW'"):
        flat(tmp_path, {"what": "VIEW", "sku": "a"})


def test_refused_consent_is_a_reason_of_rejection(tmp_path):
    refused = ga4("view_item", "/red", 1, [KETTLE])
    refused |= {"user_pseudo_id": None, "event_params": [], "privacy_info": {"analytics_storage": "No"}}
    store = imported(tmp_path, [ga4("view_item", "/red", 0, [KETTLE]), refused])
    assert "refused consent" in read_rejected(store.path)["export.jsonl:2"]
    with pytest.raises(ImportFailed, match="refused consent") as failed:
        imported(tmp_path, [refused])
    assert "does not fit" not in str(failed.value)


@pytest.mark.parametrize(
    ("mapping", "record"),
    [
        ("segment", {"type": "page", "context": {"consent": {"categoryPreferences": {"Analytics": False}}}}),
        ("shopify_pixel", {"name": "page_viewed", "customerPrivacy": {"analyticsProcessingAllowed": False}}),
        ("shopify_pixel", {"name": "page_viewed", "init": {"customerPrivacy": {"analyticsProcessingAllowed": False}}}),
    ],
)
def test_consent_is_read_where_segment_and_shopify_have_it(tmp_path, mapping, record):
    with pytest.raises(ImportFailed, match="refused consent"):
        imported(tmp_path, [record | {"timestamp": "2024-05-01T10:00:00Z"}], mapping)


def test_an_import_prints_scored_steps_by_kind(tmp_path):
    rows = [{"what": "list", "where": "/l"}, {"what": "look", "sku": "a", "where": "/a"}]
    rows += [{"what": "add", "sku": "a", "where": "/a"}, {"what": "buy", "where": "/cart"}]
    _, importer = flat(tmp_path, *rows)
    (line,) = (line for line in importer.report if line.startswith("scored: "))
    assert line.startswith("scored: product clicks: none; ")


def test_product_clicks_of_shopify_are_called_inferred():
    (layout,) = LAYOUTS.glob("shopify_pixel.*")
    importer = open_log(layout, "shopify_pixel")
    list(importer.split())
    (line,) = (line for line in importer.report if line.startswith("scored: "))
    assert "product clicks: none, all 1 inferred; adds to the cart: 1" in line
