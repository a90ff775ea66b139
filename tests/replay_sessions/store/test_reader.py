import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay_sessions import Click, Session, SessionStore, Step
from replay_sessions.foundation.errors import BadConfig, BadSession, ShopR1Error, StoreNotFound
from replay_sessions.store.manifest import write_index
from replay_sessions.store.splits import SplitPlan
from tests.json_files import edited_json
from tests.replay_sessions.conftest import make_session, sessions
from tests.stores import store_at

MakeStore = Callable[..., SessionStore]


@settings(max_examples=40, deadline=None)
@given(st.lists(sessions, min_size=1, max_size=4, unique_by=lambda session: session.session_id))
def test_any_sessions_come_back_as_they_went_in(tmp_path_factory, given):
    path = tmp_path_factory.mktemp("stores") / "store"
    store = store_at(path, given)
    assert list(store.sessions()) == given
    assert [store.session(session.session_id) for session in given] == given


def test_sessions_of_a_split_are_those_of_its_users(make_store):
    store = make_store([make_session(i) for i in range(60)])
    assert len(store) == 60
    assert store.session_ids() == [f"session-{i:04}" for i in range(60)]
    parts = [store.session_ids(split) for split in ("train", "validation", "test")]
    assert sorted(parts[0] + parts[1] + parts[2]) == store.session_ids()
    assert all(parts)
    for session in store.sessions("test"):
        assert store.split_of(session.session_id) == "test"
        assert store.user_id(session.session_id) == session.user_id
    users = [{store.user_id(i) for i in part} for part in parts]
    assert not (users[0] & users[1] or users[0] & users[2] or users[1] & users[2])


def test_the_manifest_counts_the_store(make_store):
    manifest = make_store([make_session(i, steps=3) for i in range(10)]).manifest
    assert (manifest.sessions, manifest.users, manifest.steps) == (10, 5, 30)
    assert manifest.action_counts == {"click": 20, "terminate": 10}
    assert sum(manifest.split_sessions.values()) == 10
    assert manifest.source == "test"


def test_the_fingerprint_tells_content_and_split_but_neither_order_nor_shards(make_store, monkeypatch):
    written = [make_session(i) for i in range(6)]
    fingerprint = make_store(written).fingerprint
    assert make_store(written[::-1], "reversed").fingerprint == fingerprint
    monkeypatch.setattr("replay_sessions.store.writer._SHARD_SESSIONS", 2)
    many_shards = make_store(written, "many_shards")
    assert len(many_shards.manifest.shards) == 3
    assert many_shards.fingerprint == fingerprint
    assert list(many_shards.sessions()) == written
    changed = [*written[:-1], make_session(5, page="<p>changed</p>")]
    assert make_store(changed, "changed").fingerprint != fingerprint
    assert make_store(written, "split", SplitPlan(test=0.7)).fingerprint != fingerprint


def test_nearly_equal_pages_of_a_session_compress_against_each_other(make_store):
    noise = random.Random(0)
    page = "".join(chr(noise.randrange(32, 127)) for _ in range(60_000))
    one = make_store([make_session(steps=1, page=page)], "one")
    actions = [Step(page=f"<p>{i}</p>{page}", action=Click(name="x")) for i in range(12)]
    many = make_store([msgspec.structs.replace(make_session(), steps=tuple(actions))], "many")
    sizes = [store.manifest.shards[0].size_bytes for store in (one, many)]
    assert sizes[1] < 1.1 * sizes[0]


def test_a_store_travels_to_other_processes(make_store):
    store = make_store([make_session(i) for i in range(3)])
    list(store.sessions())
    assert list(pickle.loads(pickle.dumps(store)).sessions()) == list(store.sessions())


def test_an_unknown_session_or_split_is_told(make_store):
    store = make_store([make_session(i) for i in range(3)])
    with pytest.raises(StoreNotFound, match=r"no session 'session-001' .* Did you mean 'session-0001'"):
        store.session("session-001")
    with pytest.raises(BadConfig, match=r"unknown split 'tests'. Did you mean 'test'"):
        store.session_ids("tests")


class TestNotFound:
    def test_a_near_name_is_suggested(self, make_store):
        path = make_store([make_session()], "my_shop").path
        with pytest.raises(StoreNotFound, match=f"Did you mean '{path}'"):
            SessionStore.open(path.with_name("my_shp"))
        with pytest.raises(StoreNotFound, match="Did you mean 'demo'"):
            SessionStore.open("demoo")

    def test_without_a_near_name_a_command_is_suggested(self, tmp_path):
        with pytest.raises(StoreNotFound, match="generate --sessions"):
            SessionStore.open(tmp_path / "zzzzzzzz" / "deeper")

    def test_a_file_or_another_folder_is_no_store(self, tmp_path):
        (tmp_path / "file.parquet").write_bytes(b"")
        with pytest.raises(StoreNotFound, match="is a file"):
            SessionStore.open(tmp_path / "file.parquet")
        with pytest.raises(StoreNotFound, match=r"no manifest\.json"):
            SessionStore.open(tmp_path)


class TestDamage:
    @pytest.fixture
    def store(self, make_store) -> Path:
        return make_store([make_session(i, steps=4) for i in range(8)]).path

    @staticmethod
    def read_all(path: Path) -> None:
        for session in SessionStore.open(path).sessions():
            assert session.source == "test"

    @pytest.mark.parametrize("kind", ["index.parquet", "shards/*.parquet", "manifest.json"])
    @pytest.mark.parametrize("kept", [0.0, 0.01, 0.5, 0.9, 0.98])
    def test_a_truncated_file_is_told_in_one_line(self, store, kind, kept):
        [file] = store.glob(kind)
        content = file.read_bytes()
        file.write_bytes(content[: int(len(content) * kept)])
        with pytest.raises(BadSession) as told:
            self.read_all(store)
        assert "\n" not in str(told.value)
        assert file.name in str(told.value)

    def test_a_truncated_shard_is_told_even_if_the_manifest_agrees(self, store):
        [shard] = store.glob("shards/*")
        shard.write_bytes(shard.read_bytes()[:-20])
        self.rewrite_manifest(store, shards=[{"digest": shard.stem, "size_bytes": shard.stat().st_size}])
        with pytest.raises(BadSession, match=f"{shard.name}' is damaged"):
            self.read_all(store)

    @pytest.mark.parametrize("kind", ["index.parquet", "shards/*.parquet"])
    def test_a_changed_byte_never_gives_other_sessions(self, store, kind):
        expected = list(SessionStore.open(store).sessions())
        [file] = store.glob(kind)
        content = file.read_bytes()
        told = 0
        for place in range(0, len(content), max(1, len(content) // 60)):
            changed = bytearray(content)
            changed[place] ^= 0x55
            file.write_bytes(changed)
            try:
                assert list(SessionStore.open(store).sessions()) == expected
            except ShopR1Error as error:
                assert "\n" not in str(error)
                told += 1
        assert told > 10

    def test_a_missing_shard_is_told(self, store):
        [shard] = store.glob("shards/*")
        shard.unlink()
        with pytest.raises(BadSession, match=f"{shard.name}' is missing"):
            SessionStore.open(store)

    @staticmethod
    def rewrite_manifest(store: Path, **changes: object) -> None:
        with edited_json(store / "manifest.json") as manifest:
            manifest.update(changes)

    def test_another_schema_version_is_told(self, store):
        self.rewrite_manifest(store, schema_version=99)
        with pytest.raises(BadSession, match="schema version 99"):
            SessionStore.open(store)

    @pytest.mark.parametrize("digest", ["../../other/shards/" + "0" * 32, "0" * 31, "0" * 32 + "\n", "A" * 32, ""])
    def test_a_malformed_digest_is_refused(self, store, digest):
        for changes in ({"fingerprint": digest}, {"shards": [{"digest": digest, "size_bytes": 1}]}):
            self.rewrite_manifest(store, **changes)
            with pytest.raises(BadSession, match="damaged"):
                SessionStore.open(store)

    def test_an_unknown_manifest_field_is_told(self, store):
        self.rewrite_manifest(store, more=1)
        with pytest.raises(BadSession, match=r"manifest\.json is damaged .*more"):
            SessionStore.open(store)

    def test_another_stores_shard_or_index_is_told(self, store, make_store):
        other = make_store([make_session(i + 100, steps=4) for i in range(8)], "other").path
        shutil.copy(other / "index.parquet", store / "index.parquet")
        with pytest.raises(BadSession, match=r"index\.parquet lists 8 sessions and does not match manifest\.json"):
            SessionStore.open(store)
        [shard] = store.glob("shards/*")
        shutil.copy(shard, other / "shards")
        self.rewrite_manifest(other, shards=[{"digest": shard.stem, "size_bytes": shard.stat().st_size}])
        shutil.copy(other / "index.parquet", store / "index.parquet")
        with pytest.raises(BadSession, match=r"the index has session 'session-0100' .* the file holds 'session-0000'"):
            self.read_all(other)

    def test_an_index_of_other_columns_is_told(self, store):
        pa.parquet.write_table(pa.table({"session_id": ["a"]}), store / "index.parquet")
        with pytest.raises(BadSession, match=r"index\.parquet is damaged"):
            SessionStore.open(store)


def test_the_demo_store_is_made_once_and_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_R1_CACHE", str(tmp_path))
    monkeypatch.setattr("replay_sessions.demo_shop.visits.DEMO_SESSIONS", 12)
    first = SessionStore.open("demo")
    made = first.path.stat().st_mtime_ns
    assert len(first) == 12
    assert first.manifest.source == "demo_shop"
    second = SessionStore.open("demo")
    assert (second.path.stat().st_mtime_ns, second.fingerprint) == (made, first.fingerprint)


def test_records_are_strict_when_read_back(make_store):
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.json.decode(b'{"session_id":"a","user_id":"b","source":"c","steps":[],"x":1}', type=Session)


def test_an_index_that_names_a_shard_which_is_not_there_is_refused(make_store):
    store = make_store([make_session(0)])
    rows = [msgspec.structs.replace(row, shard=99) for row in store.index()]
    write_index(store.path, rows)
    with pytest.raises(BadSession, match="names a shard"):
        SessionStore.open(store.path)


@pytest.mark.parametrize("change", [{"unsubmitted": 1}, {"action_counts": {"scroll": 1}}])
def test_a_manifest_with_other_counts_of_actions_is_detected(make_store, change):
    store = make_store([make_session(0)])
    store.check_content()
    with edited_json(store.path / "manifest.json") as manifest:
        manifest |= change
    with pytest.raises(BadSession, match="counts other actions"):
        SessionStore.open(store.path).check_content()
