"""A price without a currency takes its session's, then the log's only one, then the mapping's; none is invented."""

import pytest

from tests.replay_sessions.importers.events.test_events import flat, ga4, imported

KETTLE = {"item_id": "k1", "item_name": "Red kettle", "price": 39.5}
POT = {"item_id": "p1", "item_name": "Tea pot", "price": 12}


def view(session, currency, item=KETTLE):
    return ga4("view_item", f"/{item['item_id']}", int(session), [item], session, currency=currency)


def prices_of(folder, *events):
    sessions = imported(folder, list(events)).sessions()
    pages = [session.steps[-1].page for session in sessions]
    return [page.partition('class="price">')[2].partition("<")[0] for page in pages]


def test_a_price_takes_the_only_currency_of_the_log(tmp_path):
    assert prices_of(tmp_path, view("1", None), view("2", "EUR"), view("3", None, POT)) == [
        "€39.50",
        "€39.50",
        "€12.00",
    ]


def test_a_price_takes_the_currency_of_its_session_in_a_log_of_several(tmp_path):
    cart = ga4("view_cart", "/cart", 9, [POT | {"currency": "JPY"}], "1")
    assert prices_of(tmp_path, cart, view("1", None), view("2", "EUR"), view("3", None)) == ["¥12", "€39.50", "39.50"]


def test_no_currency_is_invented(tmp_path):
    assert prices_of(tmp_path, view("1", None)) == ["39.50"]


@pytest.mark.parametrize(("money", "shown"), [(None, "PLN 5.00"), ("EUR", "€5.00")])
def test_the_mapping_s_currency_is_the_last_choice(tmp_path, money, shown):
    rows = [{"what": "look", "sku": "a", "where": "/a", "price": 5, "money": name} for name in (None, money)]
    store, _ = flat(tmp_path, rows[0], {**rows[1], "visit": "w"}, head='currency = "PLN"')
    assert all(f">{shown}<" in session.steps[0].page for session in store.sessions())
