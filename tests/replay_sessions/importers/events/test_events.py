"""E-commerce events without pages: what a session becomes is worked out by hand, and real logs are counted."""

import csv
import gzip
import json
import os
from codecs import BOM_UTF8
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replay_sessions import Click, SessionStore, Step, Terminate, TypeAndSubmit, find_elements
from replay_sessions.__main__ import main
from replay_sessions.foundation.errors import BadConfig, ImportFailed
from replay_sessions.importers.events.importer import EventsImporter, EventsOptions
from replay_sessions.importers.events.mapping import load_event_mapping
from replay_sessions.importers.running.run_import import run_import
from shop_env.evaluation.scored_steps import EvaluationConfig
from tests.stores import read_rejected

DATA = Path(os.environ.get("SHOP_R1_TEST_DATA") or Path(__file__).parents[5] / "shared" / "data")
CLOTHING = DATA / "clothing_shop" / "clicks_april_june.csv.gz"
MERCHANDISE = DATA / "merchandise_store" / "sessions.jsonl.gz"
PLACE_ORDER = Click(name="checkout.place_order", click_type="purchase")
KETTLE = {"item_id": "k1", "item_name": "Red kettle", "price": 39.5, "currency": "USD"}
POT = {"item_id": "p1", "item_name": "Tea pot", "price": 12, "currency": "USD"}


def ga4(name: str, path: str, number: int, items: Any = (), session: str = "1", **params: Any) -> dict[str, Any]:
    values = {
        "page_location": f"https://shop.example{path}",
        "page_title": f"{path.strip('/') or 'Home'} | Shop",
        **params,
    }
    return {
        "event_name": name,
        "event_timestamp": str(1_700_000_000_000_000 + number),
        "user_pseudo_id": "u1",
        "event_params": [
            {"key": "ga_session_id", "value": {"int_value": session}},
            *({"key": key, "value": {"string_value": value}} for key, value in values.items()),
        ],
        "items": list(items),
    }


def imported(folder: Path, events: list[dict[str, Any]], mapping: str = "ga4_ecommerce") -> SessionStore:
    source = folder / "export.jsonl"
    source.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    run_import(EventsImporter(source, EventsOptions(mapping=mapping)), folder / "store", overwrite=True)
    return SessionStore.open(folder / "store")


def steps_of(store: SessionStore) -> tuple[Step, ...]:
    return next(iter(store.sessions())).steps


PURCHASE = [
    ga4("page_view", "/", 0),
    ga4("page_view", "/search", 1, search_term="kettle"),
    ga4("view_item_list", "/search", 2, [KETTLE, POT], search_term="kettle"),
    ga4("select_item", "/search", 3, [KETTLE]),
    ga4("page_view", "/red", 4),
    ga4("view_item", "/red", 5, [KETTLE]),
    ga4("add_to_cart", "/red", 6, [KETTLE]),
    ga4("view_cart", "/cart", 7, [KETTLE]),
    ga4("begin_checkout", "/pay", 8, [KETTLE]),
    ga4("purchase", "/thanks", 9, [KETTLE]),
]


def test_a_visit_of_ga4_becomes_actions_and_page_changes(tmp_path):
    steps = steps_of(imported(tmp_path, PURCHASE[::-1]))  # an export has no order but its times
    assert [(step.action, step.is_inferred) for step in steps] == [
        (TypeAndSubmit(name="search_input", text="kettle"), False),
        (Click(name="results.red_kettle.view_product"), False),
        (Click(name="product.add_to_cart"), False),
        (Click(name="nav_bar.cart"), True),
        (Click(name="cart.checkout"), True),
        (Click(name="checkout.place_order", click_type="purchase"), False),
    ]
    results, product, cart = steps[1].page, steps[2].page, steps[4].page
    assert [element.text for element in find_elements(results) if element.name.startswith("results")] == [
        "Red kettle",
        "Tea pot",
    ]
    assert "$39.50" in results and "$12.00" in results and 'value="kettle"' in results
    assert "Add to cart" in product and "Cart (0)" in product
    assert "cart.red_kettle.remove" in cart and "Cart (1)" in cart


@pytest.mark.parametrize("name", ["events.parquet", "day.json.gz", "folder", "FLAT.CSV"])
def test_other_files_of_the_same_events_give_the_same_store(tmp_path, name):
    expected = imported(tmp_path, PURCHASE).fingerprint
    path = tmp_path / name
    lines = [f"{json.dumps(event)}\n".encode() for event in PURCHASE]
    if name == "folder":
        (path / "a").mkdir(parents=True)
        (path / "a" / "part-2.jsonl.zst").touch()
        (path / "a" / "part-0.jsonl").write_bytes(BOM_UTF8 + b"".join(lines[:3]))
        (path / "part-1.json.gz").write_bytes(gzip.compress(b"".join(lines[3:])))
    elif name == "events.parquet":
        kinds = dict.fromkeys(("string_value", "int_value"))
        params = [
            [{"key": pair["key"], "value": {**kinds, **pair["value"]}} for pair in event["event_params"]]
            for event in PURCHASE
        ]
        nan = {"batch_page_id": float("nan")}  # as pandas writes what is missing
        rows = [{**event, "event_params": pairs, **nan} for event, pairs in zip(PURCHASE, params, strict=True)]
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif name == "FLAT.CSV":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, PURCHASE[0])
            writer.writeheader()
            writer.writerows(
                {key: json.dumps(value) if isinstance(value, list) else value for key, value in event.items()}
                for event in PURCHASE
            )
    else:
        path.write_bytes(gzip.compress(b"".join(lines)))
    run_import(EventsImporter(path, EventsOptions(mapping="ga4_ecommerce")), tmp_path / "other")
    other = SessionStore.open(tmp_path / "other")
    assert other.fingerprint == expected
    assert ["'part-2.jsonl.zst'" in line for line in other.manifest.warnings] == [True] * (name == "folder")


def test_a_session_ends_with_a_purchase(tmp_path):
    after = [
        ga4("page_view", "/thanks", 10),
        ga4("page_view", "/", 11),
        ga4("view_item", "/pot", 12, [POT]),
        ga4("add_to_cart", "/pot", 13, [POT]),
    ]
    store = imported(tmp_path, [*PURCHASE, *after])
    first, second = store.sessions()
    assert first.steps[-1].action == Click(name="checkout.place_order", click_type="purchase")
    assert second.session_id == f"{first.session_id} (2)" and second.user_id == first.user_id
    assert [step.action for step in second.steps] == [Click(name="product.add_to_cart"), Terminate()]
    assert "Cart (0)" in second.steps[0].page


@pytest.mark.parametrize("number", range(len(PURCHASE)))
def test_a_purchase_ends_its_session_whatever_else_the_log_lacks(tmp_path, number):
    events = [event for event in PURCHASE if event is not PURCHASE[number]] if number < 9 else PURCHASE[9:]
    for session in imported(tmp_path, events).sessions():
        last = session.steps[-1].action
        assert isinstance(last, Click) and last.click_type == "purchase"
        assert last.name in {element.name for element in find_elements(session.steps[-1].page)}


@pytest.mark.parametrize("page", ["cart", "product"])
def test_a_checkout_follows_from_the_page_before_it(tmp_path, page):
    steps = steps_of(imported(tmp_path, PURCHASE if page == "cart" else [*PURCHASE[:7], *PURCHASE[8:]]))
    assert (steps[-2].action, steps[-2].is_inferred) == (Click(name=f"{page}.checkout"), True)
    for step in steps:
        assert f'name="{getattr(step.action, "name", "")}"' in step.page


def test_inferred_actions_are_scored_where_asked_for(tmp_path):
    store = imported(tmp_path, PURCHASE)
    every = EvaluationConfig(split="all", inferred=True).keys(store)
    logged = EvaluationConfig(split="all").keys(store)
    assert [index for _, index in every] == [1, 2, 3, 4, 5]
    assert [index for _, index in logged] == [1, 2, 5]


def test_clicks_on_elements_that_the_page_lacks_are_left_out_and_counted(tmp_path):
    events = [
        ga4("view_item_list", "/list", 0, [KETTLE]),
        ga4("select_item", "/list", 1, [POT]),
        ga4("scroll", "/list", 2),
        ga4("select_item", "/list", 3, [KETTLE]),
    ]
    store = imported(tmp_path, events)
    assert [(step.action, step.gap) for step in steps_of(store)] == [
        (Click(name="results.red_kettle.view_product"), 2),
        (Terminate(), 0),
    ]
    assert store.manifest.left_out_steps == {"select_item not on its page": 1, "scroll": 1}


def test_going_back_shows_the_earlier_page_again(tmp_path):
    events = [
        ga4("view_item_list", "/list", 0, [KETTLE, POT]),
        ga4("select_item", "/list", 1, [KETTLE]),
        ga4("view_item", "/red", 2, [KETTLE]),
        ga4("select_item", "/list", 3, [POT]),
        ga4("view_item", "/pot", 4, [POT]),
    ]
    store = imported(tmp_path, events)
    kettle, pot, last = steps_of(store)
    assert kettle.page == pot.page and pot.gap == 1 and store.manifest.left_out_steps == {"back to an earlier page": 1}
    assert last.action == Terminate() and "Tea pot" in last.page
    assert [step.is_inferred for step in (kettle, pot)] == [False, True]  # only the click shows the list


def test_a_stop_is_inferred_on_pages_on_which_the_log_holds_no_action(tmp_path):
    clicks = [
        ga4("view_item_list", "/list", 0, [KETTLE]),
        ga4("select_item", "/list", 1, [KETTLE]),
        ga4("view_item", "/red", 2, [KETTLE]),
        ga4("view_item_list", "/list", 3, [KETTLE], session="2"),
    ]
    cart = [ga4(name, "/red", 4 + n, [KETTLE], session="3") for n, name in enumerate(["view_item", "add_to_cart"])]
    for events, expected in ((clicks, [True, False]), ([*clicks, *cart], [False] * 3)):
        sessions = imported(tmp_path, events).sessions()
        assert [session.steps[-1].is_inferred for session in sessions] == expected


def test_leaving_from_an_unlogged_page_is_inferred(tmp_path):
    events = [ga4("view_item_list", "/list", 0, [KETTLE]), ga4("select_item", "/list", 1, [KETTLE])]
    steps = steps_of(imported(tmp_path, events))
    assert [(type(step.action), step.is_inferred) for step in steps] == [(Click, False), (Terminate, True)]


def test_an_optional_field_that_cannot_be_read_is_counted_and_costs_nothing_else(tmp_path):
    bad = {**KETTLE, "price": "cheap", "item_list_index": "(not set)", "index": "top"}
    source = tmp_path / "export.jsonl"
    source.write_text(
        "".join(f"{json.dumps(event)}\n" for event in [*PURCHASE[:5], ga4("view_item", "/red", 5, [bad])])
    )
    importer = EventsImporter(source, EventsOptions(mapping="ga4_ecommerce"))
    run_import(importer, tmp_path / "store")
    page = steps_of(SessionStore.open(tmp_path / "store"))[-1].page
    assert "Red kettle" in page and "$" not in page
    assert any("1 price" in line and "1 position" in line for line in importer.report)


def test_an_address_that_stands_in_for_a_title_shows_no_secret(tmp_path):
    paths = ["/?token=S3CRET", "/c?email=s3cret@example.org&n=2"]
    store = imported(tmp_path, [ga4("page_view", path, n, page_title=None) for n, path in enumerate(paths)])
    assert names_of(store) == ["menu.https_shop_example_c_email_email_n_2", "terminate"]
    assert not any("s3cret" in step.page.lower() for step in steps_of(store))


def test_orders_with_other_ids_are_purchases_and_a_repeated_one_is_none(tmp_path):
    orders = [ga4("purchase", "/thanks", 9 + n, [KETTLE], transaction_id=order) for n, order in enumerate("AABA")]
    reload = ga4("purchase", "/thanks", 10**9, [KETTLE], session="2", transaction_id="A")
    store = imported(tmp_path, [reload, ga4("page_view", "/", 10**9 + 1, session="2"), *PURCHASE[:-1], *orders])
    assert [session.steps[-1].action for session in store.sessions()] == [Terminate(), PLACE_ORDER, PLACE_ORDER]
    assert store.manifest.left_out_steps["purchase of the same order after the purchase"] == 2
    assert store.manifest.left_out_steps["purchase of the same order"] == 1


def test_an_order_that_does_not_sort_is_an_error_with_file_and_row(tmp_path):
    events = [*PURCHASE, {**ga4("scroll", "/red", 10), "batch_page_id": "first"}]
    store = imported(tmp_path, events)
    assert "batch_page_id" in read_rejected(store.path)["export.jsonl:11"]


MAPPING = """
description = "d"
source = "s"
[session]
session_id = "visit"
[event]
type = "what"
path = "where"
timestamp = "when"
query = "words"
links = ["links.*.text", "links.text", "links"]
currency = "money"
[item]
id = "sku"
price = "price"
[types]
see = "page"
list = "listing"
look = "product"
find = "search"
add = "add_to_cart"
drop = "remove_from_cart"
show_cart = "cart"
follow = "follow_link"
buy = "purchase"
"""


def flat(folder: Path, *rows: dict[str, Any], head: str = "", **options: Any) -> tuple[SessionStore, EventsImporter]:
    """Rows of a log of one's own, a session unless they say otherwise."""
    (folder / "mine.toml").write_text(head + MAPPING)
    (folder / "log.jsonl").write_text("".join(json.dumps({"visit": "v", **row}) + "\n" for row in rows))
    importer = EventsImporter(folder / "log.jsonl", EventsOptions(mapping=str(folder / "mine.toml"), **options))
    run_import(importer, folder / "store", overwrite=True)
    return SessionStore.open(folder / "store"), importer


def names_of(store: SessionStore) -> list[str]:
    """What was done in the first session, in short."""
    actions = [step.action for step in steps_of(store)]
    return [getattr(action, "text", None) or getattr(action, "name", "terminate") for action in actions]


def test_events_are_read_in_the_order_of_time_whatever_the_file_s(tmp_path):
    rows = [
        {"what": "add", "sku": "a", "where": "/a", "when": "2024-05-01T10:02:00Z"},
        {"what": "look", "sku": "b", "where": "/b", "when": "2024-05-01 10:03:00 UTC"},
        {"what": "look", "sku": "a", "where": "/a", "when": "2024-05-01T10:01:00Z"},
    ]
    store, _ = flat(tmp_path, *rows)
    assert names_of(store) == ["product.add_to_cart", "terminate"]
    times = [step.timestamp for step in steps_of(store)]
    assert times == sorted(times, key=str)


def test_searches_are_kept_with_and_without_words(tmp_path):
    rows = [
        {"what": "see", "where": "/"},
        {"what": "find", "where": "/s", "words": "red"},
        {"what": "see", "where": "/x"},
    ]
    store, _ = flat(tmp_path, *rows, {"what": "find", "where": "/s2"})
    assert names_of(store) == ["red", "menu.x", "search_button", "terminate"]
    assert all("search_button" in step.page for step in steps_of(store))
    store, _ = flat(tmp_path, *rows[1:])
    assert names_of(store)[0] == "red"  # it is the first that the log has


def test_a_logged_search_that_may_be_a_return_to_its_results_is_inferred(tmp_path):
    words = ["red", "blue", "red", "red"]
    rows = [{"what": "find", "where": f"/s?q={query}", "words": query} for query in words]
    looks = [{"what": "look", "sku": "a", "where": "/a"} for _ in rows]
    store, _ = flat(
        tmp_path, {"what": "see", "where": "/"}, *(row for pair in zip(rows, looks, strict=True) for row in pair)
    )
    searches = [step for step in steps_of(store) if isinstance(step.action, TypeAndSubmit)]
    assert [(step.action.text, step.is_inferred) for step in searches] == list(
        zip(words, [False, False, True, True], strict=True)
    )


def test_a_cart_s_view_a_purchase_and_a_cart_s_action_need_no_product(tmp_path):
    words = ["look", "add", "drop", "show_cart", "drop", "buy"]
    rows = [{"what": word, "where": "/cart" if word == "show_cart" else "/a"} for word in words]
    store, importer = flat(tmp_path, *rows)
    assert names_of(store) == [
        "other.add_to_cart",
        "other.remove_from_cart",
        "nav_bar.cart",
        "other.remove_from_cart",
        "cart.place_order",
    ]
    assert not importer.warnings[1:]


def test_the_elements_of_cart_actions_are_on_every_page_of_that_kind(tmp_path):
    looks = [{"visit": str(n), "what": "look", "sku": "a", "where": "/a"} for n in range(5)]
    store, _ = flat(tmp_path, *looks, {"visit": "0", "what": "buy"}, {"visit": "1", "what": "add", "sku": "b"})
    pages = [session.steps[0].page for session in store.sessions()]
    assert len({tuple(element.name for element in find_elements(page)) for page in pages}) == 1
    assert all(name in pages[4] for name in ("product.place_order", "other.add_to_cart", "product.add_to_cart"))


@pytest.mark.parametrize("links", [["Sale"], [{"text": "Sale"}], {"text": "Sale"}, "Sale"], ids=str)
def test_promotions_are_texts_or_objects(tmp_path, links):
    store, _ = flat(tmp_path, {"what": "see", "where": "/"}, {"what": "follow", "where": "/", "links": links})
    assert names_of(store)[0] == "promotions.sale"


def test_no_step_leads_back_to_the_page_that_is_shown(tmp_path):
    rows = [
        {"what": "see", "where": "/c/mugs/2?utm_source=x"},
        {"what": "look", "where": "/c/mugs/2", "sku": "m2"},
        {"what": "see", "where": "/c/mugs/2"},
        {"what": "add", "where": "/c/mugs", "sku": "m2"},
    ]
    store, _ = flat(tmp_path, {"what": "see", "where": "/c/mugs"}, *rows)
    assert names_of(store) == ["product.add_to_cart", "terminate"]


def test_cart_checkout_confirmation_and_error_pages_are_no_links_of_the_menu(tmp_path):
    paths = ["/", "/warenkorb", "/checkout/payment", "/order-confirmation/17", "/404.html", "/c/cart-bags", "/Danke"]
    _, importer = flat(tmp_path, *({"what": "see", "where": path} for path in paths))
    assert importer.report[0].endswith("a menu of 2 links")


@pytest.mark.parametrize(
    ("price", "money", "shown"),
    [
        ("12,90", None, "12.90"),
        ("1.299,00 €", None, "€1,299.00"),
        ("$1.299", None, "$1,299.00"),
        (13620, "JPY", "¥13,620"),
        (9.5, "SEK", "SEK 9.50"),  # JSON's own numbers have a point
    ],
)
def test_prices_with_a_decimal_comma_have_their_event_s_currency(tmp_path, price, money, shown):
    row = {"what": "look", "sku": "a", "where": "/a", "price": price, "money": money}
    store, _ = flat(tmp_path, row, head="decimal_comma = true")
    assert f">{shown}<" in steps_of(store)[0].page


def test_doubtful_logs_are_warned_of_and_check_repeats_it(tmp_path, capsys):
    prices = [{"what": "look", "sku": sign, "where": f"/{sign}", "price": 5, "money": sign} for sign in ("EUR", "USD")]
    store, importer = flat(tmp_path, *prices, {"what": "follow", "where": "/EUR"})
    assert store.manifest.warnings == tuple(importer.warnings)
    capsys.readouterr()
    assert main(["check", str(store.path)]) == 0
    shown = capsys.readouterr().out
    assert "1 €, 1 $" in shown and "not one of 1 follow_link" in shown
    _, importer = flat(tmp_path, prices[0])
    assert "no event has a value for event.timestamp: correct the mapping's paths" in importer.warnings[0]
    assert "views alone" in importer.warnings[1]


def test_an_import_ends_with_reasons_and_counts_of_rejections(tmp_path):
    rows = [{"what": "look", "sku": "a", "where": "/a"}, *[{"visit": None, "what": "add", "sku": "a"}] * 3]
    _, importer = flat(tmp_path, *rows, {"visit": None, "what": "buy"})
    assert any("4" in line and "(3 add, 1 buy)" in line for line in importer.report)
    assert any("not one of 3 add_to_cart" in line for line in importer.warnings)


def test_a_pause_begins_another_session_where_the_user_says_so(tmp_path):
    rows = [{"what": "look", "sku": str(n), "where": f"/{n}", "when": 1_700_000_000 + 600 * n * n} for n in range(4)]
    assert len(flat(tmp_path, *rows)[0]) == 1
    assert len(flat(tmp_path, *rows, idle_minutes=25)[0]) == 3
    with pytest.raises(BadConfig, match="idle"):
        EventsOptions(mapping="otto", idle_minutes=0)


@pytest.mark.parametrize(("test_from", "split"), [("2023-11-14", "test"), ("2023-11-15", "train")])
def test_a_split_by_date_reads_the_times_of_the_log(tmp_path, test_from, split):
    store = imported(tmp_path, PURCHASE)
    assert steps_of(store)[0].timestamp == "2023-11-14T22:13:20.000001+00:00"
    words = f"import events {tmp_path}/export.jsonl --mapping ga4_ecommerce --validation 0".split()
    words += ["--split-by", "date", "--test-from", test_from, "--out", str(tmp_path / "dated")]
    assert main(words) == 0
    assert len(SessionStore.open(tmp_path / "dated").session_ids(split)) == 1


def test_a_log_that_the_mapping_cannot_read_says_why(tmp_path):
    with pytest.raises(ImportFailed, match=r"no row that can be read, the first for: export.jsonl:1: field"):
        imported(tmp_path, [{"event_name": "page_view"}])
    (tmp_path / "mine.toml").write_text(MAPPING.replace("[event]", 'events = "hits"\n[event]'))
    with pytest.raises(ImportFailed, match="field 'hits' is empty"):
        imported(tmp_path, [{"visit": "v"}], str(tmp_path / "mine.toml"))


def test_errors_of_wrong_mappings_name_the_key(tmp_path):
    with pytest.raises(BadConfig, match="Did you mean 'clothing_shop'"):
        load_event_mapping("cloting_shop")
    file = tmp_path / "mine.toml"
    file.write_text('description = "d"\nsource = "s"\n[session]\nsesion_id = "x"\n')
    with pytest.raises(BadConfig, match=r"unknown key 'session.sesion_id'. Did you mean 'session_id'"):
        load_event_mapping(str(file))
    for line in ("price_unit = 0", "idle_minutes = 0.5", 'delimiter = ";;"'):
        file.write_text(line + MAPPING)
        with pytest.raises(BadConfig, match=line.partition(" ")[0]):
            load_event_mapping(str(file))


def test_codes_of_nested_columns_are_replaced(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(MAPPING.replace('"money"', '"about.money"') + '[words."about.money"]\n978 = "EUR"')
    row = {"visit": "v", "what": "look", "sku": "a", "price": 5, "about": {"money": 978}}
    assert "€5.00" in steps_of(imported(tmp_path, [row], str(file)))[0].page


def test_text_of_the_log_is_escaped(tmp_path):
    odd = {"item_id": "x", "item_name": '<b name="y">"{price}"', "price": 1}
    events = [ga4("view_item_list", "/l", 0, [odd]), ga4("select_item", "/l", 1, [odd])]
    elements = find_elements(steps_of(imported(tmp_path, events))[0].page)
    assert [element.text for element in elements if "view_product" in element.name] == [odd["item_name"]]


def test_events_explain_themselves(capsys):
    assert main(["import", "events", "--help-all"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("clothing_shop", "ga4_ecommerce", "merchandise", "--mapping"))


@pytest.mark.long
@pytest.mark.skipif(not CLOTHING.exists(), reason=f"third-party data is not at {CLOTHING}")
def test_the_clothing_shop_is_read_whole(tmp_path):
    run_import(EventsImporter(CLOTHING, EventsOptions(mapping="clothing_shop")), tmp_path / "store", workers=2)
    store = SessionStore.open(tmp_path / "store")
    counts = Counter(step.is_inferred for session in store.sessions() for step in session.steps[:-1])
    left_out = store.manifest.left_out_steps
    assert len(store) == 17_031
    assert counts[False] + left_out["click not on its page"] == 116_095
    assert left_out["click not on its page"] == 7


@pytest.mark.skipif(not MERCHANDISE.exists(), reason=f"third-party data is not at {MERCHANDISE}")
def test_product_clicks_of_the_merchandise_store_are_on_the_page(tmp_path):
    importer = EventsImporter(MERCHANDISE, EventsOptions(mapping="merchandise"))
    run_import(importer, tmp_path / "store")
    store = SessionStore.open(tmp_path / "store")
    first = [session_id for session_id in store.session_ids("all") if "(" not in session_id]
    assert len(first) + store.manifest.rejected == 1_381
    assert importer.report[1:8] == [
        "select_item: 279 of 281 became actions (99.3%)",
        "quickview: 978 of 1,029 became actions (95.0%)",
        "follow_link: 88 of 103 became actions (85.4%)",
        "add_to_cart: 257 of 268 became actions (95.9%)",
        "remove_from_cart: 31 of 34 became actions (91.2%)",
        "purchase: 27 of 28 became actions (96.4%)",
        "search: 51 of 127 became actions (40.2%)",
    ]
    bought = [session for session in store.sessions() if session.steps[-1].action == PLACE_ORDER]
    assert len(bought) == 27  # of each order the confirmation was logged twice; one visit has fewer events
