"""Tables of events of web analytics, by their mappings, joined to captured pages."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replay_sessions import Click, SessionStore, Step, TypeAndSubmit
from replay_sessions.__main__ import main
from replay_sessions.foundation.errors import BadConfig, ImportFailed
from replay_sessions.importers.mapped.field_mapping import load_mapping
from replay_sessions.importers.mapped.record_paths import optional_text_at, text_at, unknown_keys
from replay_sessions.importers.raw.event_rows import event_row, read_events
from tests.replay_sessions.importers.raw.captured import SHOP, START, Shown, page, write_har

HOME = page("Home", "sale")
RESULTS = page("Results", "kettle", "pot")
KETTLE = page("Kettle", "help") + "<button>Add to cart</button>"
CHECKOUT = page("Checkout") + "<button>Place order</button>"
SHOWN = [
    Shown("/", 0, HOME),
    Shown("/search?q=kettle", 10, RESULTS),
    Shown("/kettle", 20, KETTLE),
    Shown("/checkout", 30, CHECKOUT),
]
BOUGHT = [
    TypeAndSubmit(name="q", text="kettle"),
    Click(name="kettle"),
    Click(name="add_to_cart"),
    Click(name="place_order", click_type="purchase"),
]


def ga4(
    name: str, second: float, path: str, *, items: list[dict[str, str]] | None = None, **params: Any
) -> dict[str, Any]:
    """An event as BigQuery exports it to JSON lines: integers are texts, values stand under their types."""
    typed: dict[str, Any] = {"page_location": SHOP + path, **params}
    values = [
        {"key": "ga_session_id", "value": {"int_value": "1712"}},
        *({"key": key, "value": {"string_value": value}} for key, value in typed.items()),
    ]
    return {
        "event_date": "20231114",
        "event_timestamp": str(int((START + second) * 1e6)),
        "event_name": name,
        "event_params": values,
        "user_pseudo_id": "17.42",
        "items": items or [],
        "batch_event_index": "1",
    }


GA4 = [
    ga4("session_start", 1, "/"),
    ga4("page_view", 1, "/"),
    ga4("page_view", 11, "/search?q=kettle", page_referrer=f"{SHOP}/"),
    ga4("view_search_results", 11.5, "/search?q=kettle", page_referrer=f"{SHOP}/", search_term="kettle"),
    ga4("select_item", 15, "/search?q=kettle", items=[{"item_name": "Kettle", "item_id": "k7"}]),
    ga4("scroll", 21, "/kettle"),
    ga4("add_to_cart", 25, "/kettle", items=[{"item_name": "Kettle", "item_id": "k7"}]),
    ga4("purchase", 40, "/thanks", page_referrer=f"{SHOP}/checkout", transaction_id="T1"),
    ga4("page_view", 41, "/thanks"),
]


def typed_params(event: dict[str, Any]) -> dict[str, Any]:
    """The same as a parquet file of the export holds it: all types of a value, one of them not null."""
    kinds = dict.fromkeys(("string_value", "int_value", "float_value", "double_value"))
    params = [{"key": pair["key"], "value": {**kinds, **pair["value"]}} for pair in event["event_params"]]
    return {**event, "event_timestamp": int(event["event_timestamp"]), "event_params": params}


def snowplow(name: str, second: float, path: str, **more: Any) -> dict[str, Any]:
    return {
        "app_id": "shop",
        "event_name": name,
        "event": "unstruct",
        "domain_sessionid": "d-1",
        "domain_userid": "u-1",
        "derived_tstamp": f"2023-11-14 22:13:{20 + second:06.3f}",
        "page_url": SHOP + path,
        **more,
    }


_UNSTRUCT = "unstruct_event_com_snowplowanalytics_snowplow_"
SNOWPLOW = [
    snowplow("page_view", 1, "/"),
    snowplow("site_search", 11, "/search?q=kettle", page_referrer=f"{SHOP}/",
             **{f"{_UNSTRUCT}site_search_1": {"terms": ["kettle"]}}),
    snowplow("link_click", 15, "/search?q=kettle",
             **{f"{_UNSTRUCT}link_click_1": {"targetUrl": f"{SHOP}/kettle", "elementId": ""}}),
    snowplow("page_view", 21, "/kettle"),
    snowplow("page_ping", 22, "/kettle"),
    snowplow("snowplow_ecommerce_action", 25, "/kettle",
             **{f"{_UNSTRUCT}ecommerce_snowplow_ecommerce_action_1": {"type": "add_to_cart"}}),
    snowplow("snowplow_ecommerce_action", 35, "/thanks", page_referrer=f"{SHOP}/checkout",
             **{f"{_UNSTRUCT}ecommerce_snowplow_ecommerce_action_1": {"type": "transaction"}}),
]  # fmt: skip


def write_lines(path: Path, records: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(f"{json.dumps(record)}\n" for record in records).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def imported(folder: Path, events: Path, mapping: str, *flags: str) -> SessionStore:
    har = write_har(folder / "pages.har", SHOWN)
    call = ["import", "raw", str(har), "--actions", str(events), "--mapping", mapping, *flags]
    assert main([*call, "--out", str(folder / "store"), "--overwrite"]) == 0
    return SessionStore.open(folder / "store")


def actions(store: SessionStore) -> list[Any]:
    (session,) = store.sessions()
    return [step.action for step in session.steps]


class TestGa4:
    def test_a_visit_of_json_lines_becomes_a_session_that_ends_with_the_purchase(self, tmp_path: Path) -> None:
        store = imported(tmp_path, write_lines(tmp_path / "events.jsonl", GA4), "ga4")
        assert actions(store) == BOUGHT
        (session,) = store.sessions()
        assert (session.session_id, session.user_id) == ("17.42.1712", "17.42")
        assert [step.gap for step in session.steps] == [0, 0, 1, 0]  # the scroll is one that is left out
        assert store.manifest.left_out_steps == {"scroll": 1}
        assert session.steps[0].url == f"{SHOP}/"

    @pytest.mark.parametrize("name", ["events.parquet", "day.json.gz", "folder", "flat.csv"])
    def test_other_files_of_the_same_events_give_the_same_store(self, tmp_path: Path, name: str) -> None:
        expected = imported(tmp_path, write_lines(tmp_path / "events.jsonl", GA4), "ga4").fingerprint
        path = tmp_path / name
        if name == "folder":
            write_lines(path / "a" / "part-0.jsonl", GA4[:3])
            write_lines(path / "part-1.json.gz", GA4[3:])
        elif name.endswith(".parquet"):
            pq.write_table(pa.Table.from_pylist([typed_params(event) for event in GA4]), path)
        elif name.endswith(".csv"):
            cells = [{key: json.dumps(value) if isinstance(value, list) else value for key, value in event.items()}
                     for event in GA4]  # fmt: skip
            lines = [",".join('"' + str(cell[key]).replace('"', '""') + '"' for key in GA4[0]) for cell in cells]
            path.write_text("\n".join([",".join(GA4[0]), *lines]))
        else:
            write_lines(path, GA4)
        assert imported(tmp_path, path, "ga4").fingerprint == expected

    def test_events_of_one_batch_have_one_time_and_keep_their_order(self, tmp_path: Path) -> None:
        batch = [
            {**event, "event_timestamp": str(int((START + 41) * 1e6)), "batch_event_index": str(index)}
            for index, event in enumerate(GA4)
        ]
        store = imported(tmp_path, write_lines(tmp_path / "events.jsonl", batch[::-1]), "ga4")
        assert actions(store) == BOUGHT

    def test_a_shop_says_what_its_buttons_are(self, tmp_path: Path) -> None:
        mapping = tmp_path / "mine.toml"
        built_in = Path(load_mapping.__code__.co_filename).parent / "mappings" / "ga4.toml"
        guess = 'element_text = "=Add to cart"'
        own = "selector = \"=[data-sku='{items.0.item_id}'] .add\""
        mapping.write_text(built_in.read_text().replace(guess, own))
        row = event_row(load_mapping(str(mapping), has_pages=False), GA4[6])
        assert row["selector"] == "[data-sku='k7'] .add"
        assert row["timestamp"] == "2023-11-14T22:13:45+00:00"

    def test_events_without_a_session_are_rejected(self, tmp_path: Path) -> None:
        events = [*GA4, {**GA4[0], "event_params": []}, {**GA4[0], "event_params": "no"}, [1]]
        store = imported(tmp_path, write_lines(tmp_path / "events.jsonl", events), "ga4")
        told = [json.loads(line) for line in (store.path / "rejected.jsonl").read_text().splitlines()]
        missing = "field 'event_params.ga_session_id' is missing"
        assert told == [
            {"where": "events.jsonl:10", "reason": missing},
            {"where": "events.jsonl:11", "reason": missing},
            {"where": "events.jsonl:12", "reason": "the record is no JSON object"},
        ]


class TestSnowplow:
    def test_a_visit_becomes_a_session_that_ends_with_the_purchase(self, tmp_path: Path) -> None:
        store = imported(tmp_path, write_lines(tmp_path / "events.jsonl", SNOWPLOW), "snowplow")
        assert actions(store) == BOUGHT
        assert [(session.session_id, session.user_id) for session in store.sessions()] == [("d-1", "u-1")]

    def test_columns_of_a_warehouse_read_alike(self, tmp_path: Path) -> None:
        rows = json.loads(json.dumps(SNOWPLOW).replace("targetUrl", "target_url").replace("elementId", "element_id"))
        path = tmp_path / "atomic.parquet"
        columns = dict.fromkeys(key for row in rows for key in row)
        pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in columns}), path)
        expected = imported(tmp_path, write_lines(tmp_path / "events.jsonl", SNOWPLOW), "snowplow").fingerprint
        assert imported(tmp_path, path, "snowplow").fingerprint == expected


class TestEndings:
    def events(self, *seconds_and_names: tuple[float, str, str]) -> list[dict[str, Any]]:
        items = [{"item_name": "Kettle"}]
        return [ga4(name, second, path, items=items) for second, name, path in seconds_and_names]

    def steps(self, folder: Path, events: list[dict[str, Any]], *flags: str) -> list[tuple[Step, ...]]:
        store = imported(folder, write_lines(folder / "events.jsonl", events), "ga4", *flags)
        return [session.steps for session in store.sessions()]

    def test_leaving_is_on_the_page_that_was_viewed_last(self, tmp_path: Path) -> None:
        events = self.events((15, "select_item", "/search?q=kettle"), (21, "page_view", "/kettle"))
        (steps,) = self.steps(tmp_path, events, "--terminate-at-end")
        assert [type(step.action).__name__ for step in steps] == ["Click", "Terminate"]
        assert "<h1>Kettle</h1>" in steps[1].page

    def test_a_pause_ends_a_session_on_the_page_before_it_or_on_none(self, tmp_path: Path) -> None:
        viewed = [(15, "select_item", "/search?q=kettle"), (21, "page_view", "/kettle")]
        back = [(9000, "page_view", "/"), (9001, "add_to_cart", "/kettle")]
        first, second = self.steps(tmp_path, self.events(*viewed, *back), "--idle-minutes", "30")
        assert [type(step.action).__name__ for step in first] == ["Click", "Terminate"]
        assert "<h1>Kettle</h1>" in first[1].page and len(second) == 1
        first, second = self.steps(tmp_path, self.events(viewed[0], *back), "--idle-minutes", "30")
        assert [type(step.action).__name__ for step in first] == ["Click"]  # nobody knows which page was left

    def test_who_bought_did_not_leave_even_if_the_button_is_not_found(self, tmp_path: Path) -> None:
        bought = ga4("purchase", 21, "/thanks", page_referrer=f"{SHOP}/kettle")
        events = [*self.events((15, "select_item", "/search?q=kettle")), bought, *self.events((22, "page_view", "/"))]
        (steps,) = self.steps(tmp_path, events, "--terminate-at-end")
        assert [type(step.action).__name__ for step in steps] == ["Click"]


RECORD = {
    "a": {"b": '{"c": 1}'},
    "list": [{"id": "x"}, {"id": "y"}],
    "pairs": [{"key": "k", "value": {"string_value": None, "int_value": 7}}, {"key": "plain", "value": "v"}],
    "terms": ["red", "kettle"],
    "none": None,
}


class TestPaths:
    @pytest.mark.parametrize(
        ("path", "found"),
        [
            ("a.b.c", "1"), ("list.1.id", "y"), ("list.2.id", None), ("list.id", None), ("pairs.k", "7"),
            ("pairs.plain", "v"), ("pairs.gone", None), ("terms.*", "red kettle"), ("list.*", None),
            (("none", "gone", "list.0.id"), "x"), (("none", "gone"), None),
            ("=[x='{list.0.id}'] {pairs.k}", "[x='x'] 7"), ("={gone}", None), ("=plain", "plain"),
            ("terms.99999999999999999999", None),
        ],
    )  # fmt: skip
    def test_a_path_goes_through_lists_pairs_alternatives_and_text_of_its_own(self, path: Any, found: Any) -> None:
        assert optional_text_at(RECORD, path) == found

    def test_a_template_that_lacks_a_value_is_missing(self) -> None:
        with pytest.raises(ValueError, match="field 'gone' is missing"):
            text_at(RECORD, "={gone}")

    def test_keys_of_pairs_are_known_by_their_names(self) -> None:
        known = {"a", "list", "terms", "none", "pairs.k"}
        assert list(unknown_keys(RECORD, "", known, {"pairs"})) == ["pairs.plain"]


class TestMappings:
    def mapping(self, tmp_path: Path, *lines: str) -> str:
        path = tmp_path / "mine.toml"
        path.write_text("\n".join([
            'description = "Ours"', 'source = "ours"', 'pages = "raw"', *lines,
            "[session]", 'session_id = "visit"',
            "[step]", 'type = "kind"', 'url = "address"', 'timestamp = "at"', 'element_text = "reads"',
            "[types]", 'press = "click"', 'type = "input"',
        ]))  # fmt: skip
        return str(path)

    def test_a_key_that_is_not_mapped_rejects_the_event(self, tmp_path: Path) -> None:
        event = {"visit": "v", "kind": "press", "address": f"{SHOP}/", "at": START, "reads": "Sale"}
        path = write_lines(tmp_path / "e.jsonl", [event, {**event, "ip": "127.0.0.1"}])
        table = read_events(path, load_mapping(self.mapping(tmp_path), has_pages=False))
        assert len(table) == 1
        assert "unknown field 'ip'" in table.rejected[0].reason
        assert len(read_events(path, load_mapping(self.mapping(tmp_path, 'ignored = ["ip"]'), has_pages=False))) == 2

    def test_words_that_are_not_mapped_are_no_actions_even_if_they_are_ours(self, tmp_path: Path) -> None:
        event = {"visit": "v", "kind": "click", "address": f"{SHOP}/", "at": START, "reads": "Sale"}
        mapping = load_mapping(self.mapping(tmp_path), has_pages=False)
        assert event_row(mapping, event)["type"] == "click (of no type)"
        assert event_row(mapping, {**event, "kind": "type"})["type"] == "input"

    def test_a_table_of_events_is_no_log_that_holds_pages_and_the_other_way_round(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(BadConfig, match="import raw PAGES --actions EVENTS --mapping ga4"):
            load_mapping("ga4")
        events = write_lines(tmp_path / "events.jsonl", GA4)
        assert main(["import", "jsonl", str(events), "--out", str(tmp_path / "store")]) == 2
        (tmp_path / "pages").mkdir()
        call = ["import", "raw", str(tmp_path / "pages"), "--actions", str(events), "--mapping", "ga4"]
        assert main([*call, "--out", str(tmp_path / "store")]) == 2
        assert "put a list of them beside them, pages.csv" in capsys.readouterr().err

    def test_a_word_that_is_in_no_list_of_types_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(BadConfig, match=r"\[of.pres\] is of no word in \[types\]. Did you mean 'press'"):
            load_mapping(self.mapping(tmp_path, "[of.pres]", 'element_text = "x"'), has_pages=False)

    @pytest.mark.parametrize("content", ["", "no json\n", '{"a": 1}\n'])
    def test_a_table_without_events_is_refused(self, tmp_path: Path, content: str) -> None:
        path = tmp_path / "events.jsonl"
        path.write_text(content)
        with pytest.raises(ImportFailed, match="holds no event that the mapping can read"):
            read_events(path, load_mapping("snowplow", has_pages=False))
