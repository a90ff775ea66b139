"""Logs that no mapping was written beside: every row becomes a step or is counted, and an error names row and column.

The clicks of other months and the visits that are kept back are looked for beside the data that is known.
"""

import csv
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from replay_sessions import Click, SessionStore
from replay_sessions.__main__ import main
from replay_sessions.importers.events.importer import EventsImporter, EventsOptions
from replay_sessions.importers.events.mapping import VIEWS, load_event_mapping
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store.manifest import REJECTED_FILE
from tests.json_files import read_json_lines
from tests.replay_sessions.importers.events.test_events import CLOTHING, KETTLE, MERCHANDISE, POT, ga4


def imported(source: Path, mapping: str, out: Path) -> tuple[SessionStore, EventsImporter]:
    importer = EventsImporter(source, EventsOptions(mapping=mapping))
    run_import(importer, out)
    assert main(["check", str(out)]) == 0
    return SessionStore.open(out), importer


def rejections(store: SessionStore) -> list[dict[str, str]]:
    file = store.path / REJECTED_FILE
    return read_json_lines(file) if file.exists() else []


def assert_all_actions_are_counted(store: SessionStore, mapping: str, words: Iterable[str]) -> None:
    """The rows whose words are no views: each is a step of the log, left out and counted, or a rejected row.

    Args:
        words: Of all rows that were not rejected.
    """
    views = {word for word, kinds in load_event_mapping(mapping).types.items() if kinds in VIEWS}
    expected = Counter(word for word in words if word not in views)
    steps = [step for session in store.sessions() for step in session.steps if isinstance(step.action, Click)]
    left_out = store.manifest.left_out_steps
    found = sum(not step.is_inferred for step in steps) + left_out.get("back to an earlier page", 0)
    found += sum(n for reason, n in left_out.items() if reason.partition(" ")[0] in expected and "link" not in reason)
    assert found == expected.total() > 0


def random_visit(random: Random, session: str, numbers: Callable[[], int]) -> list[dict[str, Any]]:
    """What tags of several shops send: repeated, unknown and late events, pages without a list, no address."""
    pages = ["/", "/sale", "/search", "/red", "/cart", "/pay"]
    words = [
        "page_view", "view_item_list", "select_item", "view_item", "add_to_cart", "remove_from_cart", "view_cart",
        "begin_checkout", "purchase", "scroll", "user_engagement", "select_promotion",
    ]  # fmt: skip
    visit = []
    for _ in range(random.randint(2, 25)):
        items = random.sample([KETTLE, POT, {"item_name": "(not set)"}], random.randint(0, 3))
        visit.append(ga4(random.choice(words), random.choice(pages), numbers(), items, session))
    return visit


def test_every_event_of_ga4_like_exports_is_a_step_or_counted(tmp_path):
    random, numbers = Random(0), count().__next__
    events = [event for n in range(200) for event in random_visit(random, str(n), numbers)]
    random.shuffle(events)
    bad = {
        20: ("batch_page_id", "first", "batch_page_id"),
        30: ("event_name", None, "event_name"),
        40: ("user_pseudo_id", None, "user_pseudo_id"),
    }
    for number, (column, value, _) in bad.items():
        events[number - 1] |= {"event_name": "select_item", column: value}
    (tmp_path / "export.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    store, _ = imported(tmp_path / "export.jsonl", "ga4_ecommerce", tmp_path / "store")
    reasons = {row["where"]: row["reason"] for row in rejections(store)}
    for number, (*_, column) in bad.items():
        assert column in reasons[f"export.jsonl:{number}"]
    read = [event["event_name"] for number, event in enumerate(events, start=1) if number not in bad]
    assert_all_actions_are_counted(store, "ga4_ecommerce", read)


def test_a_table_with_bad_cells_names_row_and_column(tmp_path):
    header = "year;month;day;order;country;session ID;page 1 (main category);page 2 (clothing model);colour;location"
    columns = f"{header};model photography;price;price 2;page".split(";")
    good = ["2008", "7", "1", "1", "29", "1", "4", "P1", "2", "1", "1", "38", "1", "1"]
    rows = [[*good[:3], str(order), *good[4:]] for order in range(1, 9)]
    rows[2][columns.index("order")] = "third"
    rows[4][columns.index("session ID")] = ""
    with (tmp_path / "clicks.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([columns, *rows])
    store, _ = imported(tmp_path / "clicks.csv", "clothing_shop", tmp_path / "store")
    reasons = [(row["where"], row["reason"]) for row in rejections(store)]
    assert [where for where, _ in reasons] == ["clicks.csv:4", "clicks.csv:6"]
    for (_, reason), column in zip(reasons, ["order", "session ID"], strict=True):
        assert repr(column) in reason
    assert_all_actions_are_counted(store, "clothing_shop", ["click"] * 6)


def others(known: Path, pattern: str) -> list[Path]:
    found = sorted(set(known.parent.glob(pattern)) - {known})
    return found or [known.parent / f"others like {known.name}"]


@pytest.mark.long
@pytest.mark.parametrize("file", others(CLOTHING, "*.csv.gz"), ids=lambda file: file.name)
def test_other_months_of_the_clothing_shop_are_read_whole(file, tmp_path):
    if not file.exists():
        pytest.skip(f"clicks of July and August, which are third-party data, are not in {CLOTHING.parent}")
    store, _ = imported(file, "clothing_shop", tmp_path / "store")
    with gzip.open(file, "rt") as lines:
        clicks = sum(1 for _ in lines) - 1
    assert_all_actions_are_counted(store, "clothing_shop", ["click"] * (clicks - store.manifest.rejected))
    assert store.manifest.left_out_steps.get("click not on its page", 0) < 0.01 * clicks


@pytest.mark.parametrize("file", others(MERCHANDISE, "*.jsonl.gz"), ids=lambda file: file.name)
def test_other_visits_of_the_merchandise_store_are_read_whole(file, tmp_path):
    if not file.exists():
        pytest.skip(f"other visits, which are third-party data, are not in {MERCHANDISE.parent}")
    store, importer = imported(file, "merchandise", tmp_path / "store")
    with gzip.open(file, "rt") as lines:
        assert len(store) + store.manifest.rejected >= sum(1 for _ in lines)
    assert not importer.warnings
