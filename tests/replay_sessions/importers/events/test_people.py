"""The users of the sessions of an event log, and where events without a session belong."""

import json
from typing import Any

import pytest

from replay_sessions import Session, SessionStore
from replay_sessions.__main__ import main
from replay_sessions.importers.events.importer import EventsImporter, EventsOptions
from replay_sessions.importers.running.run_import import run_import
from tests.replay_sessions.importers.events.test_events import KETTLE, PLACE_ORDER, POT, ga4, imported

MINUTE = 60_000_000


def visit(browser: str, number: int, customer: str | None = None, *, last: str | None = None) -> list[dict[str, Any]]:
    """Returns a visit of two pages, on the second of which the customer is logged in."""
    path = last or f"/pot{number}"
    events = [
        ga4("page_view", "/", number * 1_000 * MINUTE),
        ga4("view_item", path, number * 1_000 * MINUTE + 1, [POT]),
    ]
    ids = {"user_pseudo_id": browser}
    for event in events:
        event["event_params"][0]["value"] = {"int_value": str(number)}
    return [events[0] | ids, events[1] | ids | {"user_id": customer}]


def users_of(store: SessionStore) -> dict[str, str]:
    """Returns the user of each session by the number of the visit."""
    return {session.session_id.rpartition(".")[2]: session.user_id for session in store.sessions()}


def test_browsers_of_one_customer_are_one_user_in_one_split(tmp_path):
    events = [event for number in range(12) for event in visit(f"b{number}", number, f"c{number // 3}")]
    store = imported(tmp_path, [*events, *visit("b0", 90), *visit("b99", 91)])
    users = users_of(store)
    assert [users[str(number)] for number in (0, 1, 2, 3, 90, 91)] == ["c0", "c0", "c0", "c1", "c0", "b99"]
    assert store.manifest.users == 5
    splits = {(users[key.rpartition(".")[2]], store.split_of(key)) for key in store.session_ids()}
    assert len(splits) == 5
    assert store.session("b1.1").other_ids == ("b1", "b0", "b2")


def test_a_browser_of_two_customers_joins_nobody(tmp_path):
    visits = [("home", "anna"), ("home", "ben"), ("home", None), ("a", "anna"), ("b", "ben")]
    events = [event for number, (browser, customer) in enumerate(visits) for event in visit(browser, number, customer)]
    both = [
        *visit("home", 7, "anna"),
        visit("home", 7, "ben", last="/later")[1] | {"event_timestamp": "1700000500000000"},
    ]
    store = imported(tmp_path, [*events, *both])
    assert list(users_of(store).values())[:5] == ["anna", "ben", "home", "anna", "ben"]
    session = store.session("home.7")  # both logged in: it is of the first, and has the ids of both
    assert session.user_ids in (("anna", "ben", "home"), ("ben", "anna", "home"))


@pytest.mark.parametrize("nobody", ["0", "Guest", "null", "00000000-0000", "d41d8cd98f00b204e9800998ecf8427e", "pos-7"])
def test_an_id_that_stands_for_nobody_joins_nobody(tmp_path, nobody):
    events = [event for number in range(12) for event in visit(f"b{number}", number, nobody)]
    assert imported(tmp_path, events).manifest.users == 12


@pytest.mark.parametrize(("of_customer", "browsers", "users"), [(3, 12, 10), (4, 12, 12), (10, 40, 31), (11, 40, 40)])
def test_an_id_on_more_than_a_quarter_of_the_browsers_joins_nobody(tmp_path, of_customer, browsers, users):
    events = [
        event
        for number in range(browsers)
        for event in visit(f"b{number}", number, "web-user" if number < of_customer else None)
    ]
    assert imported(tmp_path, events).manifest.users == users


def test_the_number_of_joined_browsers_is_printed(tmp_path, capsys):
    events = [event for number in range(13) for event in visit(f"b{number}", number, "pos-7" if number > 1 else "c")]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in [*events, *visit("b0", 50, "d")]))
    words = ["import", "events", str(tmp_path / "log.jsonl"), "--mapping", "ga4_ecommerce"]
    assert main([*words, "--out", str(tmp_path / "store")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "users: 0 browsers are 0 customers who logged in on several; 1 browsers are of several" in printed
    assert "taken as no customer's ids: 'pos-7'" in printed


@pytest.mark.parametrize("name", ["c7", "b1", "b2"])
def test_the_table_of_customers_and_erase_take_the_id_of_the_customer_or_of_a_browser(tmp_path, name):
    greeting = {"page_title": "Hello Zoltan", "page_location": "https://shop.example/account/zoltan"}
    events = [*visit("b1", 1, "c7"), *visit("b2", 2, "c7"), *visit("b3", 3)]
    for event in events[:4]:
        event["event_params"] += [{"key": key, "value": {"string_value": value}} for key, value in greeting.items()]
        event["event_params"] = event["event_params"][:1] + event["event_params"][-2:]
    source, table, store = tmp_path / "log.jsonl", tmp_path / "customers.csv", tmp_path / "store"
    source.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    table.write_text(f"user_id,first_name\n{name},Zoltan\n")
    words = ["import", "events", str(source), "--mapping", "ga4_ecommerce", "--customers", str(table)]
    assert main([*words, "--out", str(store)]) == 0
    assert not any("zoltan" in text_of(session) for session in SessionStore.open(store).sessions())
    assert main(["erase", name, str(store)]) == 0
    assert SessionStore.open(store).session_ids() == ["b3.3"]


def text_of(session: Session) -> str:
    return " ".join(f"{step.page} {step.url}" for step in session.steps).lower()


def test_erasing_a_shared_browser_leaves_its_customers_other_visits(tmp_path, capsys):
    visits = [("home", "anna"), ("home", "ben"), ("a", "anna"), ("c", "cleo")]
    events = [event for number, (browser, customer) in enumerate(visits) for event in visit(browser, number, customer)]
    store = imported(tmp_path, events)
    assert main(["erase", "home", str(store.path)]) == 2
    assert "sessions are of 2 users: nothing was erased" in capsys.readouterr().err
    assert main(["erase", "home", str(store.path), "--yes"]) == 0
    assert SessionStore.open(store.path).session_ids() == ["a.2", "c.3"]


def server_purchase(time: int, **ids: str) -> dict[str, Any]:
    """Returns a purchase as the Measurement Protocol sends it: without a session and a page."""
    params = [{"key": "currency", "value": {"string_value": "USD"}}]
    time_us = str(1_700_000_000_000_000 + time)
    event = {"event_name": "purchase", "event_timestamp": time_us, "event_params": params, "items": [KETTLE]}
    return event | {"ecommerce": {"transaction_id": f"T{time}"}, **ids}


def buyer(number: int, *, after: str = "") -> list[dict[str, Any]]:
    """Returns a visit that ends at the checkout, or on a page after it."""
    start = number * 1_000 * MINUTE
    events = [
        ga4("page_view", "/", start),
        ga4("view_item", "/red", start + 1, [KETTLE]),
        ga4("add_to_cart", "/red", start + 2, [KETTLE]),
        ga4("begin_checkout", "/pay", start + 3, [KETTLE]),
        *(ga4(name, path, start + 4, items) for name, path, items in AFTER.get(after, ())),
    ]
    for event in events:
        event["event_params"][0]["value"] = {"int_value": str(number)}
    return [event | {"user_pseudo_id": f"b{number}"} for event in events]


AFTER: dict[str, list[tuple[str, str, list[Any]]]] = {
    "confirmed": [("page_view", "/order/17", [])],
    "home": [("page_view", "/order/17", []), ("page_view", "/", [])],
    "product": [("view_item", "/pot", [POT])],
}


def test_purchases_of_a_server_end_the_visits_of_their_buyers(tmp_path):
    events = [
        event
        for number, after in enumerate(["", "", "confirmed", "home", "product", ""])
        for event in buyer(number, after=after)
    ]
    events = [event | ({"user_id": "c1"} if event["user_pseudo_id"] == "b1" else {}) for event in events]
    late = [
        server_purchase(number * 1_000 * MINUTE + 5 * MINUTE, user_pseudo_id=f"b{number}") for number in (0, 2, 3, 4, 5)
    ]
    by_customer = server_purchase(1_000 * MINUTE + MINUTE, user_id="c1", user_pseudo_id="555.server")
    store = imported(tmp_path, [*events, *late, by_customer])
    ends = [session.steps[-1] for session in store.sessions() if not session.session_id.endswith("(2)")]
    assert [step.action for step in ends] == [PLACE_ORDER] * 6
    assert store.manifest.rejected == 0
    assert {session.session_id for session in store.sessions()} >= {f"b{number}.{number}" for number in range(6)}


def test_a_purchase_reported_twice_counts_once(tmp_path):
    bought = ga4("purchase", "/thanks", 4, [KETTLE], transaction_id=f"T{MINUTE}") | {"user_pseudo_id": "b0"}
    bought["event_params"][0]["value"] = {"int_value": "0"}
    store = imported(tmp_path, [*buyer(0), bought, server_purchase(MINUTE, user_pseudo_id="b0")])
    assert [session.steps[-1].action for session in store.sessions()] == [PLACE_ORDER]
    assert store.manifest.left_out_steps["purchase of the same order after the purchase"] == 1


def test_events_without_a_visit_at_their_time_are_rejected_and_counted(tmp_path):
    for rejected, purchases in enumerate(([], [server_purchase(31 * MINUTE, user_pseudo_id="b0")])):
        events = [*buyer(0), *purchases, server_purchase(7 * MINUTE)]
        (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
        importer = EventsImporter(tmp_path / "log.jsonl", EventsOptions(mapping="ga4_ecommerce"))
        run_import(importer, tmp_path / "store", overwrite=True)
        assert SessionStore.open(tmp_path / "store").session_ids() == ["b0.0"]
        assert f"purchase: 0 of {1 + rejected} became actions (0.0%)" in importer.report
        reason = "it has no session, and its user has no visit at its time"
        told = [line for line in importer.report if line.endswith(f"because {reason} (1 purchase)")]
        assert len(told) == rejected and not any("rejected: 0" in line for line in importer.report)


@pytest.mark.parametrize(("idle_minutes", "rejected"), [(None, 1), (20, 1), (40, 0)])
def test_the_pause_that_ends_a_visit_also_parts_an_event_without_a_session_from_it(tmp_path, idle_minutes, rejected):
    events = [*buyer(0), server_purchase(35 * MINUTE, user_pseudo_id="b0")]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    options = EventsOptions(mapping="ga4_ecommerce", idle_minutes=idle_minutes)
    run_import(EventsImporter(tmp_path / "log.jsonl", options), tmp_path / "store")
    assert SessionStore.open(tmp_path / "store").manifest.rejected == rejected


def test_a_visitor_of_segment_is_the_customer_only_while_logged_in(tmp_path):
    calls = [
        ("anna-phone", None, 0, "page", "/"),
        ("anna-phone", "anna", 1, "page", "/sale"),
        ("desk", "anna", 100, "page", "/"),
        ("desk", "ben", 200, "page", "/"),
        ("desk", None, 300, "page", "/"),
        (None, "ben", 205, "Order Completed", None),
    ]
    lines = [
        {
            "anonymousId": browser,
            "userId": customer,
            "timestamp": f"2024-05-01T{minute // 60:02}:{minute % 60:02}:00Z",
            "type": "page" if name == "page" else "track",
            "event": name,
            "context": {"page": {"path": path}},
            "properties": {"products": [{"product_id": "k", "name": "Kettle"}]},
        }
        for browser, customer, minute, name, path in calls
    ]
    store = imported(tmp_path, lines, "segment")
    users = {session.session_id: session.user_ids for session in store.sessions()}
    assert users == {
        "anna-phone": ("anna", "anna-phone"),
        "desk": ("anna", "desk"),
        "desk (2)": ("ben", "desk"),
        "desk (3)": ("desk",),
    }
    assert getattr(store.session("desk (2)").steps[-1].action, "click_type", None) == "purchase"
