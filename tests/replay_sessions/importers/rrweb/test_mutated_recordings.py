"""Damaged recordings are imported in part or refused in one line."""

import tempfile
from pathlib import Path

import hypothesis.strategies as st
import msgspec

from replay_sessions.importers.rrweb.importer import RrwebImporter, RrwebOptions
from tests.damage import count_true, damaged_file, damaged_json
from tests.replay_sessions.importers.rrweb.made_recordings import PACKINGS, Recorded, nodes_of

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


@st.composite
def damaged_recording(draw: st.DrawFn) -> tuple[str, bytes]:
    """Draws a damaged recording in some packing, and the name of its file."""
    recorded = made()
    recorded.events = draw(damaged_json(recorded.events))
    recorded.windows = [*recorded.windows, *["three"] * len(recorded.events)][: len(recorded.events)]
    are_events = all(isinstance(event, dict) for event in recorded.events)
    packing = draw(st.sampled_from(sorted(PACKINGS))) if are_events else "array.json"
    content = PACKINGS[packing](recorded)
    name = "visit" + packing[packing.index(".") :]
    return name, draw(st.just(content) | st.just(content) | damaged_file("visit", content))


def is_imported(drawn: tuple[str, bytes]) -> bool:
    name, content = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        importer = RrwebImporter(path, OPTIONS)
        reads = list(importer.read(path, importer.options))
        sessions = [read.session for read in reads if read.session]
        for step in (step for session in sessions for step in session.steps):
            target = getattr(step.action, "name", "")
            assert not target or f'name="{target}"' in step.page
        reasons = [rejected.reason for read in reads for rejected in read.rejected]
        assert sessions or reasons
        assert all(reason and "\n" not in reason for reason in reasons)
        msgspec.json.encode(reads)
        return bool(sessions)


def test_a_damaged_recording_is_imported_in_part_or_refused():
    assert is_imported(("visit.json", PACKINGS["array.json"](made())))
    assert count_true(is_imported, damaged_recording(), 60) > 30
