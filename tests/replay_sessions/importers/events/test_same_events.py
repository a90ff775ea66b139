"""Which rows of a log are the same event, and in which order events of the same time are read."""

import pytest

from replay_sessions import SessionStore
from tests.replay_sessions.importers.events.test_cases import pages_of, sessions_of, words_of
from tests.replay_sessions.importers.events.test_events import KETTLE, POT, ga4, imported, names_of


def test_batch_ids_are_read_from_columns_and_from_parameters(tmp_path):
    folder = "28-ga4-batch-ids-as-params"
    columns = sessions_of(f"{folder}/columns.jsonl", "ga4_ecommerce", tmp_path / "columns")
    params = sessions_of(f"{folder}/params.jsonl", "ga4_ecommerce", tmp_path / "params")
    assert sorted(map(words_of, columns)) == sorted(map(words_of, params))
    assert sorted(pages_of(columns)) == sorted(pages_of(params))
    assert sum("view_product" in word for session in params for word in words_of(session)) == 12


def test_tables_of_a_day_and_intraday_ones_count_once(tmp_path):
    sessions = sessions_of("30-ga4-intraday-and-daily/export", "ga4_ecommerce", tmp_path)
    words = [word for session in sessions for word in words_of(session)]
    assert [sum(name in word for word in words) for name in ("view_product", "add_to_cart")] == [8, 8]
    assert SessionStore.open(tmp_path / "store").manifest.left_out_steps == {"duplicate": 64}


def test_two_adds_of_a_batch_are_two_events(tmp_path):
    adds = [ga4("add_to_cart", "/red", 1, [KETTLE]) | {"batch_ordering_id": number} for number in (1, 2)]
    copies = [add | {"is_active_user": True} for add in adds]
    store = imported(tmp_path, [ga4("view_item", "/red", 0, [KETTLE]), *adds, *copies])
    assert names_of(store) == ["product.add_to_cart"] * 2 + ["terminate"]
    assert store.manifest.left_out_steps == {"duplicate": 2}


@pytest.mark.parametrize("words", [("add_to_cart", "view_item"), ("add_to_cart", "page_view", "view_item")])
def test_a_view_precedes_the_actions_of_its_page_at_the_same_time(tmp_path, words):
    events = [ga4(word, "/red", 0, [KETTLE] if word != "page_view" else []) for word in words]
    assert names_of(imported(tmp_path, events)) == ["product.add_to_cart", "terminate"]


def test_views_of_another_page_at_the_same_time_stay_in_the_order_of_the_log(tmp_path):
    events = [
        ga4("page_view", "/list", 0),
        ga4("select_item", "/list", 1, [POT]),
        ga4("view_item_list", "/list", 1, [POT]),
    ]
    events += [ga4("view_item", "/pot", 1, [POT]), ga4("add_to_cart", "/pot", 1, [POT])]
    store = imported(tmp_path, events)
    assert names_of(store) == ["results.tea_pot.view_product", "product.add_to_cart", "terminate"]
    assert not store.manifest.left_out_steps


def test_products_stand_in_a_list_or_in_the_event_itself(tmp_path):
    left, bought, *_ = sessions_of("37-items-list-or-event-itself/visits.json", "matomo.toml", tmp_path)
    assert words_of(bought) == ["type 'mug' into search_input", "click product.place_order (purchase)"]
    assert "<h2>Mug number 0</h2>" in left.steps[-1].page and "<h2>Mug number 1</h2>" in bought.steps[-1].page
