"""However a recording is packed, it is read as the same recording; what is none is refused with the reason."""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from replay_sessions import SessionStore
from replay_sessions.__main__ import main
from replay_sessions.foundation.errors import BadSession, ImportFailed
from replay_sessions.importers.rrweb.events import Event, Unpacker, Unread
from replay_sessions.importers.rrweb.importer import RrwebImporter, RrwebOptions
from replay_sessions.importers.rrweb.packings import Recording, read_recordings
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.schema import action_type
from tests.replay_sessions.importers.rrweb.made_recordings import PACKINGS, Recorded
from tests.stores import read_rejected

PAGE = "<title>Shop</title><input id='q' placeholder='Search'><a id='a' href='/a'>Kettle</a>"


@pytest.fixture
def made() -> Recorded:
    made = Recorded()
    tab = made.tab(PAGE).type("q", "tea für 2").click("a")
    tab.change(
        removes=[{"parentId": tab.id("body"), "id": tab.id("a")}],
        adds=[
            {"parentId": tab.id("body"), "nextId": None, "node": element(50, "a", href="/b")},
            {"parentId": 50, "nextId": None, "node": {"type": 3, "textContent": "Pot", "id": 51}},
        ],
        attributes=[{"id": tab.id("q"), "attributes": {"placeholder": "Find"}}],
    )
    tab.click(50)
    return made


def element(node_id: int, tag: str, **attributes: str) -> dict[str, Any]:
    return {"type": 2, "tagName": tag, "attributes": attributes, "childNodes": [], "id": node_id}


def stored(folder: Path, name: str, content: bytes) -> SessionStore:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    run_import(RrwebImporter(folder / name, RrwebOptions()), folder / "store", overwrite=True)
    return SessionStore.open(folder / "store")


def read(content: bytes) -> list[Recording]:
    return read_recordings(content, Unpacker(1 << 20))


def test_every_packing_gives_the_same_store(made, tmp_path):
    stores = {}
    for packing, pack in PACKINGS.items():
        name = "visit" + packing[packing.index(".") :]
        stores[packing] = stored(tmp_path / packing, name, pack(made))
    assert len(stores) == 13
    (session,) = stores["array.json"].sessions()
    assert [step.action.name for step in session.steps] == ["search", "kettle", "pot"]
    assert len({store.manifest.fingerprint for store in stores.values()}) == 1


def test_the_shared_demo_in_three_packings_gives_the_same_store(shared_data, tmp_path):
    folder = shared_data / "rrweb" / "recordings"
    stores = [
        stored(tmp_path / ending, f"demo.{ending}", (folder / f"rrweb_player_demo.{kind}.{ending}").read_bytes())
        for kind, ending in (("array", "json"), ("lines", "jsonl"))
    ]
    stores.append(stored(tmp_path / "packed", "demo.json", (folder / "rrweb_player_demo.packed.json").read_bytes()))
    assert len({store.manifest.fingerprint for store in stores}) == 1


def test_arrays_that_each_have_a_page_are_recordings_of_their_own(made, tmp_path):
    store = stored(tmp_path, "visits.json", json.dumps([made.events, made.events[:-4]]).encode())
    assert [(session.session_id, len(session.steps)) for session in store.sessions()] == [
        ("visits", 3),
        ("visits (2)", 2),
    ]


def test_files_of_a_folder_are_recordings_of_their_own(made, tmp_path, capsys):
    folder = tmp_path / "logs" / "u1"
    folder.mkdir(parents=True)
    (folder / "1.json").write_text(json.dumps(made.events[:12]))
    (folder / "2.json.gz").write_bytes(gzip.compress(json.dumps(made.events[12:]).encode()))
    (folder / "readme.md").write_text("no recording")
    assert main(f"import rrweb {tmp_path}/logs --out {tmp_path}/s".split()) == 0
    store = SessionStore.open(tmp_path / "s")
    assert {session.session_id: len(session.steps) for session in store.sessions()} == {"u1/1": 1}
    assert store.manifest.rejected == 1
    assert "readme.md" in capsys.readouterr().out


def test_events_are_played_in_the_order_of_time_and_equal_times_in_that_of_the_file():
    events = [{"type": 4, "timestamp": time, "data": {"href": name}} for time, name in ((3, "a"), (1, "b"), (3, "c"))]
    (recording,) = read(json.dumps([*events, 17]).encode())
    ordered = recording.in_time_order()
    assert [event.number for event in ordered] == [2, 1, 3, 4]
    assert isinstance(ordered[3], Unread)


def test_a_batch_that_never_came_is_told_and_its_tab_is_unknown_up_to_the_next_page(tmp_path):
    made = Recorded()
    one, other = made.tab(PAGE, window="one"), made.tab(PAGE, window="other")
    one.click("a")
    other.click("a")
    change = one.change(texts=[]).recorded.events[-1]
    one.click("a")
    other.click("a")
    one.go("https://shop.example/next", PAGE).click("a")
    lines = PACKINGS["batches.jsonl"](made).splitlines()
    (lost,) = (line for line in lines if json.loads(line)["data"] == [change])
    store = stored(tmp_path, "visit.jsonl", b"\n".join(line for line in lines if line != lost))
    (session,) = store.sessions()
    assert [step.gap for step in session.steps] == [0, 0, 1, 0]  # the click after it is left out
    told = list(read_rejected(store.path).values())
    assert told[0] == f"batch {json.loads(lost)['number']} of window one never came"
    assert "which may have changed the page, cannot be read" in told[1]


def test_lines_that_are_no_event_are_kept_with_the_reason():
    good = {"type": 4, "timestamp": 1, "data": {}}
    (recording,) = read(b"\n".join([json.dumps(good).encode(), b"{", b'"x"', b"17", b'{"a": 1}', b"[" * 3000]))
    kinds = [type(event) for event in recording.events]
    assert kinds == [Event, Unread, Unread, Unread, Unread, Unread]
    assert all(isinstance(event, Event) or event.reason for event in recording.events)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b"\x00\xff", b"null", b"hello", b'{"result": []}', b"\x1f\x8bxx"]
)
def test_a_file_without_events_is_refused(content):
    with pytest.raises(BadSession, match=r"no rrweb event|gzip file is damaged"):
        read(content)


def test_packings_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("replay_sessions.importers.rrweb.importer.LONGEST_SESSION_BYTES", 1 << 20)
    bomb = gzip.compress(b" " * (40 << 20))
    packed = json.dumps([zlib.compress(b" " * (40 << 20)).decode("latin-1")]).encode()
    for content in (bomb, packed):
        with pytest.raises(BadSession, match="unpacks to more than 1 MiB"):
            read(content)
    (tmp_path / "a.json").write_bytes(packed)
    with pytest.raises(ImportFailed, match=r"no session could be imported: a\.json: it unpacks to more than 1 MiB"):
        run_import(RrwebImporter(tmp_path / "a.json", RrwebOptions()), tmp_path / "store")


def test_a_recording_of_too_long_pages_is_refused(tmp_path, monkeypatch):
    tab = Recorded().tab(f"<p>{'word ' * 1_000}</p><a id='a' href='/a'>A</a>").click("a")
    for number in range(5):
        tab.change(attributes=[{"id": tab.id("a"), "attributes": {"href": f"/{number}"}}]).click("a")
    (tmp_path / "visit.json").write_bytes(PACKINGS["array.json"](tab.recorded))
    importer = RrwebImporter(tmp_path / "visit.json", RrwebOptions())
    monkeypatch.setattr("replay_sessions.importers.importer.LONGEST_SESSION_BYTES", 20_000)
    assert importer.size < 20_000 < 6 * len("word " * 1_000)
    with pytest.raises(ImportFailed, match=r"visit\.json: the session is longer than"):
        run_import(importer, tmp_path / "store")


def test_a_source_that_is_not_there_or_empty_is_told(tmp_path):
    for source, told in ((tmp_path / "gone", "there is no file or folder"), (tmp_path, "and holds none, that ends in")):
        with pytest.raises(ImportFailed, match=told):
            RrwebImporter(source, RrwebOptions())


@pytest.mark.parametrize(
    "packing", ["lines.jsonl", "rows.jsonl", "stored.jsonl", "batches.jsonl", "packed_lines.jsonl"]
)
@pytest.mark.parametrize("missing", [2, 40])
def test_a_recording_cut_in_a_line_gets_no_terminate_and_says_so(tmp_path, packing, missing):
    made = Recorded()
    made.tab(PAGE).click("a").wait(3).note("more", {"text": "x" * 60})
    lines = PACKINGS[packing](made).splitlines()
    content = b"\n".join(lines[::-1] if packing == "batches.jsonl" else lines)
    ends = {}
    for name, taken in (("whole", content), ("cut", content[:-missing])):
        (tmp_path / f"{name}.jsonl").write_bytes(taken)
        options = RrwebOptions(terminate_at_end=True)
        run_import(RrwebImporter(tmp_path / f"{name}.jsonl", options), tmp_path / name)
        ends[name] = SessionStore.open(tmp_path / name)
    assert [action_types(store) for store in ends.values()] == [["click", "terminate"], ["click"]]
    assert ends["whole"].manifest.left_out_steps == {}
    assert ends["cut"].manifest.left_out_steps == {"terminate without a page": 1}
    listed = (tmp_path / "cut" / "rejected.jsonl").read_text()
    assert "Input data was truncated" in listed
    assert "cannot be read" in listed


def action_types(store: SessionStore) -> list[str]:
    (session,) = store.sessions()
    return [action_type(step.action) for step in session.steps]


@pytest.mark.parametrize("packing", list(PACKINGS))
def test_half_an_emoji_costs_one_character(tmp_path, packing):
    made = Recorded()
    made.tab(PAGE.replace("Kettle", "Kettle CUT \U0001f957 \\\\ud83e")).click("a")
    made.events = json.loads(json.dumps(made.events).replace("CUT", "\\ud83e"))
    (session,) = stored(tmp_path, packing, PACKINGS[packing](made)).sessions()
    assert "Kettle \ufffd \U0001f957 \\\\ud83e" in session.steps[0].page
