"""E-commerce events without pages: what a session becomes is worked out by hand, and real logs are counted."""

import csv
import gzip
import json
import os
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
from replay_sessions.store.manifest import REJECTED_FILE
from shop_env.evaluation.scored_steps import EvaluationConfig

DATA = Path(os.environ.get("SHOP_R1_TEST_DATA") or Path(__file__).parents[5] / "shared" / "data")
CLOTHING = DATA / "clothing_shop" / "clicks_april_june.csv.gz"
MERCHANDISE = DATA / "merchandise_store" / "sessions.jsonl.gz"
KETTLE = {"item_id": "k1", "item_name": "Red kettle", "price": 39.5}
POT = {"item_id": "p1", "item_name": "Tea pot", "price": 12}


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


def test_a_visit_of_ga4_becomes_its_actions_and_what_led_from_page_to_page(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", ["events.parquet", "day.json.gz", "folder", "flat.csv"])
def test_other_files_of_the_same_events_give_the_same_store(tmp_path: Path, name: str) -> None:
    expected = imported(tmp_path, PURCHASE).fingerprint
    path = tmp_path / name
    lines = [f"{json.dumps(event)}\n".encode() for event in PURCHASE]
    if name == "folder":
        (path / "a").mkdir(parents=True)
        (path / "a" / "part-0.jsonl").write_bytes(b"".join(lines[:3]))
        (path / "part-1.json.gz").write_bytes(gzip.compress(b"".join(lines[3:])))
    elif name == "events.parquet":
        kinds = dict.fromkeys(("string_value", "int_value"))
        params = [
            [{"key": pair["key"], "value": {**kinds, **pair["value"]}} for pair in event["event_params"]]
            for event in PURCHASE
        ]
        rows = [{**event, "event_params": pairs} for event, pairs in zip(PURCHASE, params, strict=True)]
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif name == "flat.csv":
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
    assert SessionStore.open(tmp_path / "other").fingerprint == expected


def test_every_logged_action_stands_on_the_page_before_it(tmp_path: Path) -> None:
    for step in steps_of(imported(tmp_path, PURCHASE)):
        if not isinstance(step.action, Terminate):
            assert step.action.name in {element.name for element in find_elements(step.page)}


def test_inferred_actions_can_be_left_out_of_the_score(tmp_path: Path) -> None:
    store = imported(tmp_path, PURCHASE)
    every = EvaluationConfig(split="all").keys(store)
    logged = EvaluationConfig(split="all", inferred=False).keys(store)
    assert [index for _, index in every] == [1, 2, 3, 4, 5]
    assert [index for _, index in logged] == [1, 2, 5]


def test_what_is_not_on_the_page_is_left_out_and_counted(tmp_path: Path) -> None:
    events = [
        ga4("view_item_list", "/list", 0, [KETTLE]),
        ga4("select_item", "/list", 1, [POT]),
        ga4("scroll", "/list", 2),
        ga4("select_item", "/list", 3, [KETTLE]),
    ]
    store = imported(tmp_path, events)
    assert [(step.action, step.gap) for step in steps_of(store)] == [(Click(name="results.red_kettle.view_product"), 2)]
    assert store.manifest.left_out_steps == {"select_item not on its page": 1, "scroll": 1}


def test_going_back_shows_the_earlier_page_again(tmp_path: Path) -> None:
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


def test_a_terminate_needs_a_page_that_was_shown(tmp_path: Path) -> None:
    events = [ga4("view_item_list", "/list", 0, [KETTLE]), ga4("select_item", "/list", 1, [KETTLE])]
    assert [type(step.action) for step in steps_of(imported(tmp_path, events))] == [Click]


def test_a_bad_field_is_named_with_its_row(tmp_path: Path) -> None:
    events = [*PURCHASE, ga4("view_item", "/red", 10, [{**KETTLE, "price": "cheap"}])]
    store = imported(tmp_path, events)
    assert store.manifest.rejected == 1
    assert json.loads((store.path / REJECTED_FILE).read_text()) == {
        "where": "export.jsonl:11",
        "reason": "field ('price', 'price_in_usd') is 'cheap', and a number was expected",
    }


@pytest.mark.parametrize(("test_from", "split"), [("2023-11-14", "test"), ("2023-11-15", "train")])
def test_a_split_by_date_reads_the_times_of_the_log(tmp_path: Path, test_from: str, split: str) -> None:
    store = imported(tmp_path, PURCHASE)
    assert steps_of(store)[0].timestamp == "2023-11-14T22:13:20.000001+00:00"
    words = ["import", "events", str(tmp_path / "export.jsonl"), "--mapping", "ga4_ecommerce", "--validation", "0"]
    words += ["--split-by", "date", "--test-from", test_from, "--out", str(tmp_path / "dated")]
    assert main(words) == 0
    assert len(SessionStore.open(tmp_path / "dated").session_ids(split)) == 1  # type: ignore[arg-type]


def test_a_log_that_the_mapping_cannot_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match=r"no row that can be read, the first for: export.jsonl:1: field"):
        imported(tmp_path, [{"event_name": "page_view"}])


def test_wrong_mappings_name_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="Did you mean 'clothing_shop'"):
        load_event_mapping("cloting_shop")
    file = tmp_path / "mine.toml"
    file.write_text('description = "d"\nsource = "s"\n[session]\nsesion_id = "x"\n')
    with pytest.raises(BadConfig, match=r"unknown key 'session.sesion_id'. Did you mean 'session_id'"):
        load_event_mapping(str(file))


def test_text_of_the_log_is_escaped(tmp_path: Path) -> None:
    odd = {"item_id": "x", "item_name": '<b name="y">"{price}"', "price": 1}
    page = steps_of(imported(tmp_path, [ga4("view_item_list", "/l", 0, [odd]), ga4("select_item", "/l", 1, [odd])]))[
        0
    ].page
    assert [element.text for element in find_elements(page) if "view_product" in element.name] == [
        '<b name="y">"{price}"'
    ]


def test_events_explain_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "events", "--help-all"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("clothing_shop", "ga4_ecommerce", "merchandise", "--mapping"))


@pytest.mark.long
@pytest.mark.skipif(not CLOTHING.exists(), reason=f"third-party data is not at {CLOTHING}")
def test_the_clothing_shop_is_read_whole(tmp_path: Path) -> None:
    run_import(EventsImporter(CLOTHING, EventsOptions(mapping="clothing_shop")), tmp_path / "store", workers=2)
    store = SessionStore.open(tmp_path / "store")
    counts = Counter(step.is_inferred for session in store.sessions() for step in session.steps[:-1])
    left_out = store.manifest.left_out_steps
    assert len(store) == 17_031
    assert counts[False] + left_out["click not on its page"] == 116_095
    assert left_out["click not on its page"] == 7


@pytest.mark.skipif(not MERCHANDISE.exists(), reason=f"third-party data is not at {MERCHANDISE}")
def test_product_clicks_of_the_merchandise_store_are_on_the_page(tmp_path: Path) -> None:
    importer = EventsImporter(MERCHANDISE, EventsOptions(mapping="merchandise"))
    run_import(importer, tmp_path / "store")
    store = SessionStore.open(tmp_path / "store")
    assert len(store) + store.manifest.rejected == 1_381
    assert importer.report[1] == (
        "clicks on products: 1,264 of 1,273 (99.3%) are on the page before them; the rest is left out"
    )
