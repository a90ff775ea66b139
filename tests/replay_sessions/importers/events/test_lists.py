"""Product clicks of logs that show no lists: a page offers what was clicked on it, whatever the mapping could read."""

from random import Random

import pytest

from replay_sessions import Click, SessionStore
from replay_sessions.importers.events.importer import EventsImporter, EventsOptions
from replay_sessions.importers.events.mapping import MAPPINGS
from replay_sessions.importers.running.run_import import run_import
from tests.replay_sessions.importers.events.made_visits import MadeVisit
from tests.replay_sessions.importers.events.test_cases import CASES
from tests.replay_sessions.importers.events.test_events import KETTLE, POT, ga4, imported, names_of, steps_of

CLICKS = CASES / "20-clicks-without-lists" / "segment.jsonl"


@pytest.mark.parametrize(("least", "clicks"), [(1, 8), (4, 8), (5, 0)])
def test_a_log_without_lists_offers_often_clicked_elements(tmp_path, least, clicks):
    (tmp_path / "mine.toml").write_text(f"min_clicks = {least}\n" + (MAPPINGS / "segment.toml").read_text())
    importer = EventsImporter(CLICKS, EventsOptions(mapping="segment" if least == 1 else str(tmp_path / "mine.toml")))
    run_import(importer, tmp_path / "store")
    steps = [step for session in SessionStore.open(tmp_path / "store").sessions() for step in session.steps]
    assert sum("view_product" in getattr(step.action, "name", "") for step in steps) == clicks
    (line,) = (line for line in importer.report if line.startswith("lists: the log has none"))
    assert f"`min_clicks = {least}`" in line and "1 listing" in line


def test_a_log_of_ga4_without_lists_keeps_its_product_clicks(tmp_path):
    random = Random(1)
    visits = [MadeVisit(str(number), random, lists=False).write() for number in range(30)]
    store = imported(tmp_path, [event for visit in visits for event in visit.events])
    steps = [step for session in store.sessions() for step in session.steps if isinstance(step.action, Click)]
    clicks = [step for step in steps if step.action.name.endswith("view_product") and not step.is_inferred]
    assert len(clicks) == sum(word == "select_item" for visit in visits for word, _ in visit.actions)
    assert all(f'name="{step.action.name}"' in step.page for step in clicks)


def test_a_page_without_lists_beside_pages_with_them_offers_its_clicks(tmp_path):
    visit = [ga4("page_view", "/", 0), ga4("select_item", "/", 1, [POT]), ga4("view_item", "/pot", 2, [POT])]
    visit += [ga4("select_item", "/pot", 3, [KETTLE]), ga4("view_item", "/red", 4, [KETTLE])]  # related products
    visit += [ga4("view_item_list", "/list", 5, [KETTLE]), ga4("select_item", "/list", 6, [POT])]
    store = imported(tmp_path, visit)
    names = ["results.tea_pot.view_product", "results.red_kettle.view_product", "terminate"]
    assert [name for name in names_of(store) if "menu." not in name] == names
    assert "results.red_kettle" in steps_of(store)[1].page
    assert store.manifest.left_out_steps["select_item not on its page"] == 1  # /list shows what it lists


def test_clicks_without_an_address_are_offered_where_the_log_has_no_lists(tmp_path):
    events = [
        ga4("page_view", "/mugs", 0),
        ga4("select_item", "", 1, [POT], page_location=None),
        ga4("view_item", "/pot", 2, [POT]),
    ]
    assert names_of(imported(tmp_path, events)) == ["results.tea_pot.view_product", "terminate"]
