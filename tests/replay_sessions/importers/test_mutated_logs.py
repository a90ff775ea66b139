"""Mutated logs: whatever is done to a file, it is imported in part or refused in one line, without a traceback."""

import gzip
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay_sessions import SessionStore
from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.importers.mapped.jsonl import JsonlImporter, JsonlOptions
from replay_sessions.importers.running.run_import import run_import
from tests.replay_sessions.conftest import make_session
from tests.replay_sessions.importers.mapped.test_jsonl import autowebbench_line, miniwob_line

pytestmark = pytest.mark.long

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
LINES: dict[str, Any] = {
    "shop_r1": msgspec.to_builtins(make_session(1)),
    "miniwob": miniwob_line(),
    "autowebbench": autowebbench_line((0, "click"), (1, "hover"), (2, "terminate")),
}
SPLICES = [b"\0", b"\xff", b"\xed\xa0\x80", rb"\ud800", b"\n", b'"', b"{", b"[" * 3000, b"1e999", b"<" * 50, b"]|"]


def import_bytes(content: bytes, mapping: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_bytes(content)
        try:
            run_import(JsonlImporter(path, JsonlOptions(mapping=mapping)), Path(folder) / "store")
        except ShopR1Error as error:
            assert "\n" not in str(error)
        else:
            assert len(list(SessionStore.open(Path(folder) / "store").sessions())) > 0


@pytest.mark.parametrize("mapping", LINES)
def test_cut_and_spliced_bytes(mapping: str) -> None:
    draw = Random(mapping)
    good = msgspec.json.encode(LINES[mapping])
    for _ in range(120):
        content = bytearray(good)
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(content) + 1)
            content[place : place + draw.choice([0, 0, 1, 40])] = draw.choice(SPLICES)
        whole = good + b"\n" + content
        import_bytes(whole[: draw.randint(0, len(whole))] if draw.random() < 0.3 else whole, mapping)


@pytest.mark.parametrize("mapping", LINES)
@settings(max_examples=120, deadline=None)
@given(value=json_values, place=st.randoms(use_true_random=False))
def test_any_value_in_any_place(mapping: str, value: Any, place: Random) -> None:
    import_bytes(msgspec.json.encode(put_somewhere(LINES[mapping], value, place)), mapping)


def put_somewhere(record: Any, value: Any, place: Random) -> Any:
    """`record` with one part of it, anywhere inside, replaced by `value`."""
    if place.random() < 0.2 or not isinstance(record, dict | list) or not record:
        return value
    if isinstance(record, list):
        index = place.randrange(len(record))
        return [*record[:index], put_somewhere(record[index], value, place), *record[index + 1 :]]
    key = place.choice(sorted(record))
    return {**record, key: put_somewhere(record[key], value, place)}


def test_damaged_gzip() -> None:
    draw = Random(0)
    good = gzip.compress(b"".join(msgspec.json.encode(make_session(i)) + b"\n" for i in range(30)))
    for _ in range(200):
        content = bytearray(good)
        content[draw.randrange(len(content))] ^= draw.randrange(1, 256)
        import_bytes(bytes(content[: draw.randint(0, len(content))]), draw.choice([None, "shop_r1"]))
