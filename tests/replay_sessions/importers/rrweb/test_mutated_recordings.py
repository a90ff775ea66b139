"""Mutated recordings: whatever is done to one, it is imported in part or refused in one line."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from replay_sessions import Session, SessionStore
from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.importers.rrweb.importer import RrwebImporter, RrwebOptions
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store.manifest import Rejected
from tests.replay_sessions.importers.mutations import NESTED, VALUES, spoiled
from tests.replay_sessions.importers.rrweb.made_recordings import PACKINGS, Recorded, nodes_of

Json = Any
PAGE = """<title>Shop</title><style>.m {display: none}</style>
<form role="search"><input id="q" name="q"><button id="go">Go</button></form>
<label id="l"><input type="checkbox" id="c">Blue</label><select id="s"><option id="o" value="1">S<option>L</select>
<textarea id="t">x</textarea><iframe id="f"></iframe><ul id="ul"><li><a id="a" href="/a">Kettle</a></ul>"""
OPTIONS = RrwebOptions(purchase_selector="#go", purchase_url="/thanks", idle_minutes=30, terminate_at_end=True)


def made() -> Recorded:
    """A recording in which everything occurs."""
    recorded = Recorded()
    tab = recorded.tab(PAGE, window="one").click("a").type("q", "tea").key_click("go")
    document, ids, next_id = nodes_of("<a id='in' href='/in'>Inside</a>", 200)
    tab.change(adds=[{"parentId": tab.id("f"), "nextId": None, "node": document}])
    adds = [
        {"parentId": next_id, "nextId": None, "node": {"type": 3, "textContent": "New", "id": next_id + 1}},
        {"parentId": tab.id("ul"), "nextId": None, "node": {"type": 2, "tagName": "a", "attributes": {"href": "/n"},
                                                            "childNodes": [], "id": next_id, "isShadow": True}},
    ]  # fmt: skip
    tab.click("l", changes={"adds": adds, "texts": [{"id": tab.id("a") + 1, "value": "Pot"}]}).key_click("c", 1)
    tab.give("c", "on", ticked=True).click(ids["in"]).click(next_id)
    tab.change(attributes=[{"id": tab.id("a"), "attributes": {"style": {"display": "none"}, "href": None}}])
    tab.change(removes=[{"parentId": tab.id("ul"), "id": tab.id("a")}])
    other = recorded.tab(PAGE, "https://shop.example/2", window="two").click("s").focus("s").give("s", "1")
    tab.wait(3600).go("https://shop.example/s?q=tea", PAGE).click("a").type("t", "*****")
    other.point(7, "a").click("a").note("shop_r1.rationale", {"text": "Why not."}).note("$pageview", {"href": "/x"})
    return recorded


def mutated(recorded: Recorded, draw: Random) -> tuple[str, bytes]:
    """A spoiled recording in some packing, and the name of its file."""
    for _ in range(draw.choice([0, 1, 1, 2, 4])):
        draw.choice([_drop, _swap, _repeat, _other_id, _other_value, _other_value, _retime])(recorded, draw)
    are_events = all(isinstance(event, dict) for event in recorded.events)
    packing = draw.choice(sorted(PACKINGS)) if are_events else "array.json"
    content = PACKINGS[packing](recorded)
    if draw.random() < 0.3:
        content = spoiled("visit.html", content, draw)  # its bytes
    elif draw.random() < 0.1:
        place = draw.randrange(len(content))
        content = content[:place] + draw.choice(NESTED).encode() + content[place:]
    return "visit" + packing[packing.index(".") :], content


def _drop(recorded: Recorded, draw: Random) -> None:
    place = draw.randrange(len(recorded.events))
    del recorded.events[place : place + draw.choice([1, 3, 30])]
    del recorded.windows[len(recorded.events) :]
    if not recorded.events:
        recorded.events, recorded.windows = [{}], [""]


def _swap(recorded: Recorded, draw: Random) -> None:
    one, other = (draw.randrange(len(recorded.events)) for _ in range(2))
    recorded.events[one], recorded.events[other] = recorded.events[other], recorded.events[one]


def _repeat(recorded: Recorded, draw: Random) -> None:
    place = draw.randrange(len(recorded.events))
    stretch = recorded.events[place : place + draw.choice([1, 5, 50])]
    recorded.events[place:place] = stretch
    recorded.windows += [draw.choice(["one", "two", "three"])] * len(stretch)


def _retime(recorded: Recorded, draw: Random) -> None:
    event = draw.choice(recorded.events)
    event["timestamp"] = draw.choice([0, -1, 1e18, 1e300, 17, "1", None, event.get("timestamp")])


def _other_id(recorded: Recorded, draw: Random) -> None:
    """A node that is another, or none, or takes part in a circle."""
    places = [place for event in recorded.events for place in _places(event, ("id", "parentId", "nextId", "rootId"))]
    known = [holder[key] for holder, key in places]
    for holder, key in draw.sample(places, min(len(places), draw.choice([1, 3, 20]))):
        holder[key] = draw.choice([draw.choice(known), draw.choice(known), -1, 0, 2**40, None])


def _other_value(recorded: Recorded, draw: Random) -> None:
    places = [place for event in recorded.events for place in _places(event, None)]
    if not places:
        return
    holder, key = draw.choice(places)
    holder[key] = draw.choice([*VALUES[:40], {}, [], {"id": 1}, [{"id": 3}], 0, 1, 2, 3, 5, "*" * 30])


def _places(value: Json, keys: tuple[str, ...] | None) -> Iterator[tuple[Json, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        if keys is None or key in keys:
            yield value, key
        yield from _places(inner, keys)


def check(name: str, content: bytes) -> bool:
    """Whether it was imported."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        importer = RrwebImporter(path, OPTIONS)
        read = list(importer.read(path, importer.options))
        sessions = [record for record in read if isinstance(record, Session)]
        for step in (step for session in sessions for step in session.steps):
            target = getattr(step.action, "name", "")
            assert not target or f'name="{target}"' in step.page
        reasons = [record.reason for record in read if isinstance(record, Rejected)]
        assert sessions or reasons
        assert all(reason and "\n" not in reason for reason in reasons)
        msgspec.json.encode(read)
        return bool(sessions)


def check_store(name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            run_import(RrwebImporter(path, OPTIONS), Path(folder) / "store")
        except ShopR1Error as error:
            assert "\n" not in str(error)
        else:
            assert list(SessionStore.open(Path(folder) / "store").sessions())


def test_mutations_of_a_made_recording_are_imported_in_part_or_refused() -> None:
    assert check("visit.json", PACKINGS["array.json"](made()))
    for seed in range(1_000, 1_010):
        check_store(*mutated(made(), Random(seed)))
    assert sum(check(*mutated(made(), Random(seed))) for seed in range(120)) > 60
