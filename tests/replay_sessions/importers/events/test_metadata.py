"""Metadata of pages tell no more of the next action than the log's own frequencies."""

import json
from collections import Counter, defaultdict
from random import Random
from typing import Any

from replay_sessions import Session, SessionStore, Terminate, find_elements
from replay_sessions.importers.events.importer import EventsImporter, EventsOptions
from replay_sessions.importers.running.run_import import run_import

MAPPING = """
description = "d"
source = "s"
[session]
session_id = "visit"
[event]
type = "what"
path = "where"
timestamp = "when"
items = "items"
[item]
id = "sku"
[types]
page_view = "page"
list = "listing"
select = "select_item"
view = "product"
cart = "add_to_cart"
remove = "remove_from_cart"
purchase = "purchase"
"""


def random_log(random: Random, visits: int) -> list[dict[str, Any]]:
    """Visits that decide by a coin, whatever they have seen: nothing but frequencies can be learned from them."""
    rows = []
    for visit in range(visits):
        clock = 0

        def log(what: str, where: str, item: int | None = None, visit: int = visit) -> None:
            nonlocal clock
            clock += 60
            items = [{"sku": str(n)} for n in range(4)] if what == "list" else [{"sku": str(item)}] if item else []
            rows.append(
                {"visit": str(visit), "what": what, "where": where, "when": 1_700_000_000 + clock, "items": items}
            )

        item = random.randint(1, 3)
        log("view", f"/p/{item}", item)
        while (what := random.choices(["view", "cart", "remove", "purchase", "leave"], [4, 2, 1, 1, 1])[0]) != "leave":
            other = random.randint(1, 3) if random.random() < 0.5 else item  # also of products that are not shown
            log(what, "/thank-you" if what == "purchase" else f"/p/{other}", other)
            item = other if what == "view" else item
            if what == "purchase":
                break
    return rows


def kind_of(session: Session, index: int) -> str:
    action = session.steps[index].action
    return "leave" if isinstance(action, Terminate) else action.name.rpartition(".")[2]


def facts_of(session: Session, index: int) -> list[tuple[str, object]]:
    """Names and values of the page: the place in the visit, its length and its elements."""
    page = session.steps[index].page
    names = sorted(element.name for element in find_elements(page))
    return [
        ("place", index),
        ("count", len(names)),
        ("length", len(page) // 20),
        ("elements", tuple(names)),
        ("kinds", tuple(sorted({name.rpartition(".")[2] for name in names}))),
    ]


def test_metadata_tell_no_more_than_frequencies(tmp_path):
    (tmp_path / "mine.toml").write_text(MAPPING)
    rows = random_log(Random(0), 1500)
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    importer = EventsImporter(tmp_path / "log.jsonl", EventsOptions(mapping=str(tmp_path / "mine.toml")))
    run_import(importer, tmp_path / "store")
    sessions = list(SessionStore.open(tmp_path / "store").sessions())
    keys = [(session, n) for session in sessions for n, step in enumerate(session.steps) if not step.is_inferred]
    kinds, half = [kind_of(*key) for key in keys], len(keys) // 2
    frequent = Counter(kinds[:half]).most_common(1)[0][0]
    base = kinds[half:].count(frequent) / len(kinds[half:])
    for facts in zip(*(facts_of(*key) for key in keys), strict=True):
        tables: defaultdict[object, Counter[str]] = defaultdict(Counter)
        for fact, kind in zip(facts[:half], kinds[:half], strict=True):
            tables[fact][kind] += 1
        hits = [
            tables[fact].most_common(1)[0][0] == kind
            for fact, kind in zip(facts[half:], kinds[half:], strict=True)
            if fact in tables
        ]
        assert sum(hits) / len(hits) < base + 0.04, facts[0][0]
