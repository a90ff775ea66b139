"""The collector loses nothing that it has acknowledged, and refuses all that is no batch."""

import http.client
import json
import random
import re
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from replay_sessions import Click, SessionStore
from replay_sessions.__main__ import main
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.recorder.batches import read_batch
from replay_sessions.recorder.journal import Journal
from tests.replay_sessions.recorder.conftest import SHOP, Collecting, batch, batches_of_a_visit, lines_of

pytestmark = pytest.mark.long

EVENT = {"type": 5, "timestamp": 1_700_000_000_000, "data": {"tag": "a"}}


def store_of(folder: Path) -> SessionStore:
    assert main(f"import rrweb {folder}/recordings --workers 1 --out {folder}/store".split()) == 0
    return SessionStore.open(folder / "store")


def test_a_batch_that_comes_again_is_acknowledged_and_not_written_again(collect, tmp_path):
    collecting = collect()
    first, second = batches_of_a_visit(2)
    answers = [collecting.post(posted) for posted in (first, second, first, second)]
    assert [answer["new"] for _, answer in answers] == [True, True, False, False]
    collecting.kill()
    assert collect().post(second) == (200, {"new": False})  # also by a collector that has not seen it
    assert [line["number"] for line in lines_of(tmp_path)] == [0, 1]


def test_a_number_that_other_events_have_is_refused(collecting, tmp_path):
    assert collecting.post(batch([EVENT]))[0] == 200
    status, answer = collecting.post(batch([{**EVENT, "type": 4}]))
    assert status == 409
    assert "with other events" in answer["error"]
    assert len(lines_of(tmp_path)) == 1


def test_batches_in_any_order_become_the_same_session(collecting, tmp_path):
    posted = batches_of_a_visit(6)
    random.Random(3).shuffle(posted)
    assert [collecting.post(one)[0] for one in posted] == [200] * 6
    (session,) = store_of(tmp_path).sessions()
    assert [getattr(step.action, "name", "") for step in session.steps] == ["red_kettle", "cart"] * 2 + ["red_kettle"]
    assert not any(step.gap for step in session.steps)


@pytest.mark.parametrize("seed", range(2))
def test_every_acknowledged_event_is_on_the_disk_after_kill_9_at_any_moment(collect, tmp_path, seed):
    """Eight shoppers post, the collector is killed and started again at random, until all of them are through."""
    acknowledged: list[Any] = []
    port = free_port()
    through = threading.Event()

    def shop(number: int) -> None:
        for posted in batches_of_a_visit(12, session=f"s{number}"):
            while True:
                try:
                    status, _ = current[0].post(posted)
                except (OSError, ValueError, http.client.HTTPException):  # it was killed, perhaps while it answered
                    status = None
                    time.sleep(0.01)
                if status == 200:
                    break
            acknowledged.append(posted)

    current = [collect(port=port)]
    chance = random.Random(seed)
    with ThreadPoolExecutor(8) as shoppers:
        done = [shoppers.submit(shop, number) for number in range(8)]
        threading.Thread(target=lambda: ([one.result() for one in done], through.set()), daemon=True).start()
        for _ in range(3):
            through.wait(chance.uniform(0.0, 0.25))
            current[0].kill()
            assert_on_disk(tmp_path, list(acknowledged))
            current[0] = collect(port=port)
        assert through.wait(120)
    current[0].kill()
    assert len(acknowledged) == 8 * 12
    assert_on_disk(tmp_path, acknowledged)
    sessions = list(store_of(tmp_path).sessions())
    assert [len(session.steps) for session in sessions] == [11] * 8
    assert not any(step.gap for session in sessions for step in session.steps)


def assert_on_disk(folder: Path, acknowledged: list[Any]) -> None:
    """Each acknowledged batch stands once in its file, whole; nothing but a last line may be cut off."""
    for posted in acknowledged:
        content = (folder / "recordings" / f"{posted['session_id']}.jsonl").read_bytes()
        lines = [json.loads(line) for line in content[: content.rfind(b"\n") + 1].splitlines()]
        found = [line["data"] for line in lines if line.get("number") == posted["number"]]
        assert found == [posted["events"]]


def test_a_last_line_that_a_kill_cut_off_is_taken_away_and_the_rest_imports(collect, tmp_path):
    collecting = collect()
    posted = batches_of_a_visit(3)
    for one in posted[:2]:
        collecting.post(one)
    collecting.kill()
    file = tmp_path / "recordings" / "s1.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"window_id":"w1","number":2,"data":[{"type":3')
    (session,) = store_of(tmp_path).sessions()  # as it lies there
    assert [step.action for step in session.steps] == [Click(name="red_kettle")]
    assert collect().post(posted[2]) == (200, {"new": True})
    assert file.read_bytes().startswith(whole)
    assert [line["number"] for line in lines_of(tmp_path)] == [0, 1, 2]


def test_a_full_disk_is_507_and_nothing_is_acknowledged_or_left_behind(collect, tmp_path):
    collecting = collect(RLIMIT_FSIZE=3_000)
    small, large = batch([EVENT]), batch([{**EVENT, "data": "x" * 2_900}], 1)
    assert collecting.post(small)[0] == 200
    before = (tmp_path / "recordings" / "s1.jsonl").read_bytes()
    assert collecting.post(large)[0] == 507
    assert (tmp_path / "recordings" / "s1.jsonl").read_bytes() == before
    assert collecting.post(small) == (200, {"new": False})
    assert collecting.post(batch([EVENT], 2))[0] == 200  # what fits goes on
    collecting.kill()
    assert collect().post(large) == (200, {"new": True})  # there is room again


WRONG = [
    b"",
    b"{",
    b"[]",
    b"\xff\xfe",
    b"[" * 500_000,
    json.dumps(batch([EVENT])).encode().replace(b'"tag"', b'"\xff"'),
    batch([]),
    batch([1]),
    batch([{"type": 3}]),
    batch([{**EVENT, "timestamp": -1}]),
    batch([{**EVENT, "timestamp": 1e300}]),
    batch([{**EVENT, "type": "3"}]),
    batch([EVENT], -1),
    batch([EVENT], 2**40),
    {**batch([EVENT]), "path": "x"},
    {name: value for name, value in batch([EVENT]).items() if name != "user_id"},
]
TRICKS = [
    "",
    ".",
    "..",
    "../s1",
    "a/b",
    "/etc/passwd",
    "a\\b",
    "a\x00b",
    "A",
    "s1\n",
    ".token",
    "ä",
    "x" * 65,
    "s1.jsonl",
]


def test_bodies_that_are_no_batch_are_400(collecting, tmp_path):
    for wrong in WRONG:
        status, answer = collecting.post(wrong)
        assert (status, list(answer)) == (400, ["error"]), wrong
    assert [path.name for path in (tmp_path / "recordings").iterdir()] == [".lock"]


def test_no_id_leads_out_of_the_folder(collecting, tmp_path):
    outside = [path for path in tmp_path.rglob("*") if path.parent.name != "recordings"]
    for number, trick in enumerate(TRICKS):
        assert collecting.post(batch([EVENT], session=trick))[0] == (200 if trick else 400), trick
        assert collecting.post(batch([EVENT], number, window=trick))[0] == (200 if trick else 400), trick
        assert collecting.post(batch([EVENT], number, window="w2", user=trick))[0] == (200 if trick else 400), trick
    assert [path for path in tmp_path.rglob("*") if path.parent.name != "recordings"] == outside
    names = [path.name for path in (tmp_path / "recordings").glob("*.jsonl")]
    assert len(names) == len(TRICKS)  # one for each, with that of s1, but for the empty one
    assert all(re.fullmatch(r"[0-9a-f]{32}\.jsonl|s1\.jsonl", name) for name in names)


@pytest.mark.parametrize("session_id", ["ORD-7F3A", "Order 7/2024 – Müller", "anna@example.org", "ord-7f3a"])
def test_an_id_of_any_form_is_taken_and_imported(collecting, tmp_path, session_id):
    for posted in batches_of_a_visit(3, session=session_id):
        assert collecting.post({**posted, "user_id": f"Customer {session_id}"}) == (200, {"new": True})
    (session,) = store_of(tmp_path).sessions()
    assert (session.session_id, session.user_id) == (session_id, f"Customer {session_id}")
    assert len(session.steps) == 2


def test_half_an_emoji_costs_one_character_and_no_batch(collecting, tmp_path):
    first, second = batches_of_a_visit(2, shop=SHOP.replace("Red kettle", "Red kettle CUT"))
    body = json.dumps(first).replace("CUT", "\\ud83e")
    assert collecting.post(body.encode()) == (200, {"new": True})
    assert collecting.post(second) == (200, {"new": True})
    (session,) = store_of(tmp_path).sessions()
    assert "Red kettle \ufffd" in session.steps[0].page


def test_refusals_are_logged_without_the_token_and_not_one_by_one(collecting, caplog):
    for _ in range(20):
        collecting.post(b"{")
    lines = [record.message for record in caplog.records if "refused (400)" in record.message]
    assert 1 <= len(lines) <= 5
    assert "that is no batch of events" in lines[0]
    assert collecting.token not in "".join(lines)


@pytest.mark.parametrize("tag", ["shop_r1.session", "shop_r1\\u002esession"])
def test_an_event_that_names_another_session_is_refused(collecting, tmp_path, tag):
    claim = {**EVENT, "data": {"tag": "TAG", "payload": {"session_id": "s9", "user_id": "u9"}}}
    status, answer = collecting.post(json.dumps(batch([EVENT, claim])).replace("TAG", tag).encode())
    assert status == 400
    assert "shop_r1.goal" in answer["error"]
    assert not (tmp_path / "recordings" / "s1.jsonl").exists()


def test_the_collector_writes_the_logged_in_user(collecting, tmp_path):
    posted = batches_of_a_visit(4)
    for number, one in enumerate(posted):
        assert collecting.post({**one, "user_id": "u1" if number < 2 else "c17"})[0] == 200
    lines = [json.loads(line) for line in (tmp_path / "recordings" / "s1.jsonl").read_bytes().splitlines()]
    users = [line["data"][0]["data"]["payload"]["user_id"] for line in lines if "number" not in line]
    assert users == ["u1", "c17"]
    assert store_of(tmp_path)[0].user_id == "c17"


def test_escape_sequences_of_a_request_do_not_reach_the_log(collecting, caplog):
    collecting.post(json.dumps(batch([EVENT])).replace('"w1"', '"w1", "\\u001b[31m": 1').encode())
    lines = [record.getMessage() for record in caplog.records if "refused (400)" in record.getMessage()]
    assert lines
    assert "\x1b" not in "".join(lines)


def test_a_link_in_the_folder_is_not_followed(tmp_path):
    (tmp_path / "other").write_text("kept")
    with Journal(tmp_path / "recordings", most_session_bytes=1 << 20) as journal:
        journal.path("s1").symlink_to(tmp_path / "other")
        failed = journal.append(read_batch(json.dumps(batch([EVENT])).encode()))
        assert failed.exception() is not None
    assert (tmp_path / "other").read_text() == "kept"


def test_a_post_needs_the_token(collect, tmp_path):
    collecting = collect()
    posted = batch([EVENT])
    assert collecting.post(posted, path="/batches")[0] == 404
    for token in ("wrong", collecting.token[:-1], collecting.token.upper(), "%00", "%ff"):
        assert collecting.post(posted, path=f"/{token}/batches")[0] == 403, token
    assert collecting.post(posted)[0] == 200
    collecting.kill()
    assert collect().token == collecting.token  # so that pages need not change
    assert (tmp_path / "recordings" / ".token").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "recordings" / "s1.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_body_that_is_too_long_is_413_whether_it_says_so_or_not(collecting, tmp_path):
    long = json.dumps(batch([{**EVENT, "data": "x" * (1 << 20)}])).encode()
    assert status_of(collecting, b"Content-Length: 99999999999\r\n\r\n") == 413  # before anything is sent
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (long[:600_000], long[600_000:], b""))
    assert status_of(collecting, b"Transfer-Encoding: chunked\r\n\r\n" + chunked) == 413
    assert not list((tmp_path / "recordings").glob("*.jsonl"))


def test_a_session_grows_no_longer_than_an_import_reads(collecting, tmp_path):
    large = {**EVENT, "data": "x" * 600_000}
    assert [collecting.post(batch([large], number))[0] for number in (0, 1)] == [200, 413]
    assert [line["number"] for line in lines_of(tmp_path)] == [0]


def status_of(collecting: Collecting, rest: bytes) -> int:
    host, port = collecting.netloc.split(":")
    head = f"POST /{collecting.token}/batches HTTP/1.1\r\nHost: {collecting.netloc}\r\n".encode()
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(head + rest)
        return int(connection.recv(100).split()[1])


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_one_line(collect, stop):
    collecting = collect()
    collecting.post(batch([EVENT]))
    collecting.process.send_signal(stop)
    told, wrong = collecting.process.communicate(timeout=60)
    assert wrong == ""
    assert told.startswith("stopped: 1 batch taken, all on the disk in ")
    assert told.count("\n") == 1
    assert collecting.process.returncode == 130


def test_one_process_alone_collects_into_a_folder(collect, tmp_path):
    collect()
    with pytest.raises(BadConfig, match="another process is at work"):
        Journal(tmp_path / "recordings", most_session_bytes=1)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
