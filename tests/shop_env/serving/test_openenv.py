"""The server as OpenEnv's own client meets it."""

import asyncio
import http.client
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pkgutil import resolve_name
from typing import Any

import pytest

from replay_sessions.foundation.errors import BadConfig
from shop_env.replies import format_reply
from shop_env.reward.score import reward_preset
from tests.processes import ROOT, run_python, with_checkout
from tests.shop_env.serving.contract import HARD_REPLIES, Paid, paid_by_gym, reply_of_kind

openenv = pytest.importorskip("openenv", reason="`make test-serving` brings it")
pytestmark = [
    pytest.mark.serving,
    # Of OpenEnv and what it imports, not of ours.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

TERMINATE = '{"rationale": "", "action": {"type": "terminate"}}'


class Server:
    """A server in a process of its own, and clients of it."""

    def __init__(self, *flags: str) -> None:
        words = [sys.executable, "-m", "shop_env.serving", "openenv", "--port", "0", *flags]
        self.process = subprocess.Popen(
            words, env=with_checkout(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        line = self.process.stdout.readline()
        assert line.startswith("serving"), line + self.stop()
        self.url = line.split(" at ")[1].split()[0]

    def client(self, **options: Any) -> Any:
        """A client for `with`, of the usual kind."""
        return openenv.GenericEnvClient(base_url=self.url, **options).sync()

    def stop(self) -> str:
        """Ends the server; returns what it wrote on standard error."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.communicate(timeout=300)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@pytest.fixture(scope="module")
def server(store_path) -> Iterator[Server]:
    server = Server("--store", store_path, "--splits", "test", "train", "--max-sessions", "40")
    yield server
    assert server.stop() == ""


def paid(result: Any) -> Paid:
    info = result.observation["info"]
    return Paid(
        result.reward,
        result.observation["reward_breakdown"],
        info["best_reward"],
        info["logged_action"],
        info.get("problem"),
    )


def answered(client: Any, reply: str, **task: Any) -> Any:
    client.reset(**task)
    return client.step({"reply": reply})


@pytest.fixture
def indices(tasks) -> dict[str, int]:
    """By the id of the task, of the test split."""
    return {task.task_id: task.index for task in tasks.tasks("test")}


def test_replies_earn_the_reward_of_the_env(server, store_path, indices):
    expected = paid_by_gym(store_path)
    with server.client() as client:
        for (task_id, kind), pay in expected.items():
            reply = reply_of_kind(kind, pay.logged_action)
            result = answered(client, reply, split="test", index=indices[task_id])
            assert paid(result) == pay
            assert result.done


def test_flags_decide_the_reward(store_path, indices):
    kinds = ["logged", "other_name", "fenced", "thinking"]
    expected = paid_by_gym(store_path, kinds=kinds, reward="customer_r1", extraction="lenient")
    server = Server("--store", store_path, "--splits", "test", "--reward", "customer_r1", "--extraction", "lenient")
    with server.client() as client:
        for (task_id, kind), pay in expected.items():
            assert paid(answered(client, reply_of_kind(kind, pay.logged_action), index=indices[task_id])) == pay
    server.stop()


def test_a_task_is_shown_as_the_env_shows_it_and_tells_nothing_else(server, tasks):
    with server.client() as client:
        for index in range(12):
            task = tasks.task("test", index)
            result = client.reset(split="test", index=index)
            seen = result.observation
            assert (result.reward, result.done, seen["reward_breakdown"]) == (None, False, None)
            assert seen["messages"] == task.messages
            parts = {key: seen[key] for key in task.observation}
            assert parts == {**task.observation, "history": list(task.observation["history"])}
            assert set(seen["info"]) == {"task_id", "split", "index", "session_id", "user_id", "step_index"}
            after = client.step({"reply": ""}).observation
            assert (after["page"], after["messages"], after["history"]) == ("", [], [])  # the next page is a task too


def test_nothing_can_be_answered_twice_or_before_it_was_asked(server):
    with server.client() as client:
        with pytest.raises(RuntimeError, match="call reset before step"):
            client.step({"reply": TERMINATE})
        client.reset(index=0)
        client.step({"reply": TERMINATE})
        with pytest.raises(RuntimeError, match="call reset before step"):
            client.step({"reply": TERMINATE})


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ({"split": "tset"}, "Did you mean 'test'"),
        ({"split": "validation"}, "not served here"),
        ({"split": ["test"]}, "not served here"),
        ({"index": 10**9}, "whole number from 0 to"),
        ({"index": -1}, "0 or more"),
        ({"index": 1.0}, "whole number"),
        ({"indx": 1}, "Did you mean 'index'"),
        ({"seed": float("nan")}, "seed is nan"),
        ({"seed": float("inf")}, "seed is inf"),
        ({"seed": "1"}, "whole number"),
        ({"episode_id": 5}, "must be a text"),
    ],
)
def test_a_wrong_reset_is_told_and_leaves_the_session_usable(server, task, told):
    with server.client() as client:
        with pytest.raises(RuntimeError, match=told):
            client.reset(**task)
        with pytest.raises(RuntimeError, match="call reset before step"):
            client.step({"reply": TERMINATE})
        assert client.reset(index=0).observation["info"]["index"] == 0


@pytest.mark.parametrize("action", [{}, {"reply": 5}, {"reply": None}, {"reply": float("nan")}, {"repli": ""}])
def test_an_action_that_is_no_reply_is_an_error_and_no_reward_of_0(server, action):
    with server.client() as client:
        client.reset(index=0)
        with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
            client.step(action)
        assert client.step({"reply": TERMINATE}).done


def test_every_frame_is_strict_json(server):
    from websockets.sync.client import connect  # noqa: PLC0415 - comes with OpenEnv

    def strict(constant: str) -> None:
        raise AssertionError(f"a frame holds {constant}")

    with connect(server.url.replace("http", "ws") + "/ws") as socket:

        def ask(message: str) -> Any:
            socket.send(message)
            return json.loads(socket.recv(), parse_constant=strict)

        for data in ('{"seed": NaN}', '{"index": Infinity}', '{"split": NaN}', '{"episode_id": -Infinity}'):
            assert ask(f'{{"type": "reset", "data": {data}}}')["type"] == "error"
        for reply in HARD_REPLIES.values():
            assert ask('{"type": "reset", "data": {"index": 0}}')["type"] == "observation"
            assert ask('{"type": "step", "data": {"reply": NaN}}')["type"] == "error"
            assert ask(json.dumps({"type": "step", "data": {"reply": reply}}))["data"]["done"]


def test_very_long_replies_do_not_close_the_socket(server):
    length = 40_000_000
    long = format_reply("y" * length, {"type": "terminate"})
    with server.client() as client:
        for reply in ("x" * length, long, "é" * (length // 6)):  # the last is 6 bytes a letter on its way
            result = answered(client, reply, index=0)
            assert result.reward == (0.5 if reply is long else 0.0) or result.observation["info"]["exact_match"]
        assert client.reset(index=1).observation["info"]["index"] == 1


def test_the_same_seed_draws_the_same_task_and_others_draw_others(server):
    with server.client() as one, server.client() as other:
        drawn = [one.reset(split="train", seed=seed).observation["info"]["index"] for seed in range(20)]
        assert len(set(drawn)) > 10
        for seed in reversed(range(20)):
            assert other.reset(split="train", seed=seed).observation["info"]["index"] == drawn[seed]
        assert len({other.reset().observation["info"]["index"] for _ in range(10)}) > 1
        assert other.reset().observation["info"]["split"] == "test"  # the first of --splits


def test_the_episode_has_the_name_that_the_client_gave(server):
    with server.client() as client:
        client.reset(index=0, episode_id="mine")
        assert (client.state()["episode_id"], client.state()["step_count"]) == ("mine", 0)
        client.step({"reply": ""})
        assert client.state()["step_count"] == 1
        client.reset(index=0)
        assert client.state()["episode_id"] not in ("mine", None)


def test_32_clients_at_once_each_have_a_session_of_their_own(server, tasks):
    count = tasks.count("train")

    async def play(number: int, all_are_asked: asyncio.Barrier) -> None:
        async with openenv.GenericEnvClient(base_url=server.url) as client:
            for turn in range(5):
                index = (number * 7 + turn * 31) % count
                task = tasks.task("train", index)
                result = await client.reset(split="train", index=index, episode_id=f"{number}-{turn}")
                assert result.observation["messages"] == task.messages
                await all_are_asked.wait()  # everybody has a task before anybody answers
                logged = tasks.score("train", index, "").logged_action
                result = await client.step({"reply": format_reply(f"{number}", logged)})
                assert result.observation["info"]["task_id"] == task.task_id
                assert result.observation["info"]["exact_match"]
                assert (await client.state())["episode_id"] == f"{number}-{turn}"

    async def all_play() -> None:
        barrier = asyncio.Barrier(32)
        await asyncio.gather(*(play(number, barrier) for number in range(32)))

    asyncio.run(all_play())


def post(server: Server, path: str, body: Any) -> tuple[int, Any]:
    import httpx  # noqa: PLC0415 - comes with OpenEnv

    method = "GET" if body is None else "POST"
    answer = httpx.request(method, server.url + path, json=body, timeout=30)
    return answer.status_code, answer.json()


def test_tasks_are_listed_over_http(server, tasks):
    count = tasks.count("test")
    keys = ("task_id", "index", "session_id", "user_id", "step_index")
    listed = [{"split": "test", **{key: getattr(task, key) for key in keys}} for task in tasks.tasks("test")]
    names = [split["name"] for split in post(server, "/shop_r1/splits", None)[1]]
    assert names == ["test", "train"]
    assert post(server, "/shop_r1/num_tasks", {"split": "test"}) == (200, {"num_tasks": count})
    assert post(server, "/shop_r1/tasks", {"split": "test"})[1]["tasks"] == listed
    assert post(server, "/shop_r1/task", {"split": "test", "index": 3}) == (200, {"task": listed[3]})
    assert post(server, "/shop_r1/task_range", {"split": "test", "start": 2, "stop": 4})[1]["tasks"] == listed[2:4]
    for path, body in [("num_tasks", {"split": "x"}), ("task", {"split": "test", "index": count})]:
        status, told = post(server, f"/shop_r1/{path}", body)
        assert (status, told["detail"].startswith(("split 'x' is not served", f"index is {count}"))) == (400, True)


def test_plain_http_says_that_it_has_no_sessions(server):
    assert post(server, "/reset", {"split": "test", "index": 0})[0] == 200
    status, told = post(server, "/step", {"action": {"reply": TERMINATE}})
    assert (status, "WebSocket" in told["detail"]) == (400, True)


def test_the_package_passes_openenvs_static_check():
    package = ROOT / "shop_env" / "serving"
    words = ["validate", str(package), "--level", "static", "--json"]
    done = run_python("-m", "openenv.cli", *words)
    assert done.returncode == 0, done.stdout
    report = json.loads(done.stdout)
    assert report["verdict"] == "pass"
    low, high = report["manifest"]["reward"]["range"]
    config = reward_preset("shop_r1")
    assert (low, high) == (0.0, pytest.approx(config.format + config.action_type + 0.1 * 3 + config.dars))


def test_the_manifest_names_the_package_and_an_app_that_answers():
    import yaml  # noqa: PLC0415 - comes with OpenEnv
    from fastapi.testclient import TestClient  # noqa: PLC0415 - comes with OpenEnv

    manifest = yaml.safe_load((ROOT / "shop_env" / "serving" / "openenv.yaml").read_text(encoding="utf-8"))
    answered = TestClient(resolve_name(manifest["app"]), base_url="http://localhost").get(f"/{manifest['name']}/splits")
    assert [split["name"] for split in answered.json()] == ["train", "validation", "test"]


def eventually(check: Callable[[], bool], timeout_s: float = 300) -> bool:
    """Whether it becomes true before long; a machine may be busy."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(0.2)
    return False


def has_room(server: Server) -> bool:
    try:
        with server.client() as client:
            client.reset(index=0)
    except (RuntimeError, OSError):
        return False
    return True


def test_a_session_that_asks_nothing_for_too_long_is_freed_and_says_so(store_path):
    server = Server("--store", store_path, "--max-sessions", "1", "--idle-timeout-s", "4")
    with server.client() as idle:
        idle.reset(index=0)
        assert eventually(lambda: has_room(server))
        with pytest.raises(RuntimeError, match="idle for too long"):
            idle.step({"reply": TERMINATE})
        with pytest.raises(RuntimeError, match="idle for too long"):  # or there would be two sessions
            idle.reset(index=0)
    server.stop()


def test_a_full_server_says_so(store_path):
    server = Server("--store", store_path, "--max-sessions", "1")
    with server.client() as first:
        first.reset(index=0)
        with pytest.raises(RuntimeError, match="CAPACITY_REACHED"), server.client() as second:
            second.reset(index=0)
        assert first.step({"reply": TERMINATE}).done
    server.stop()


def test_pages_of_other_sites_cannot_connect_and_mcp_is_closed(store_path):
    server = Server("--store", store_path, "--max-sessions", "1", "--token", "0123456789abcdef")
    address, _, token = server.url.removeprefix("http://").partition("/")
    for headers, prefix, status in (
        ({"Origin": "https://evil.example"}, f"/{token}", 403),
        ({"Host": "evil.example"}, f"/{token}", 421),
        ({}, "", 403),
    ):
        connection = http.client.HTTPConnection(address)
        connection.request("GET", f"{prefix}/shop_r1/splits", headers=headers)
        assert connection.getresponse().status == status
        handshake = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        connection = http.client.HTTPConnection(address)
        connection.request("GET", f"{prefix}/ws", headers=headers | handshake | {"Sec-WebSocket-Key": "a" * 22 + "=="})
        assert connection.getresponse().status == 403
    for _ in range(3):
        connection = http.client.HTTPConnection(address)
        body = '{"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create"}'
        connection.request("POST", f"/{token}/mcp", body, {"Content-Type": "application/json"})
        assert connection.getresponse().status == 404
    with server.client() as client:
        assert answered(client, TERMINATE, index=0).done
    server.stop()


@pytest.mark.parametrize("stopping", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_server_ends_in_time_while_clients_are_connected(store_path, stopping):
    server = Server("--store", store_path)
    with server.client() as client:
        client.reset(index=0)
        server.process.send_signal(stopping)
        told = server.process.communicate(timeout=300)[1]
        assert "Traceback" not in told
        with pytest.raises(Exception, match=r"."):  # and no reward
            client.step({"reply": TERMINATE})


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("--store no/such/store", "no session store at 'no/such/store'"),
        ("--splits tset", "Did you mean 'test'"),
        ("--prompt.system-file no/such/file", "'no/such/file' cannot be read"),
        ("--reward shop_r2", "Did you mean 'shop_r1'"),
        ("--max-sessions 0", "--max-sessions is 0"),
        ("--idle-timeout-s nan", "--idle-timeout-s is nan"),
        ("--port 70000", "--port is 70000"),
        ("--host no.such.host.invalid", "no.such.host.invalid is not available"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(flags, told):
    done = run_python("-m", "shop_env.serving", "openenv", "--port", "0", *flags.split())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert told in done.stderr


def test_a_port_that_is_taken_is_told_with_the_remedy(server):
    port = server.url.rpartition(":")[2]
    done = run_python("-m", "shop_env.serving", "openenv", "--port", port)
    assert (done.returncode, "choose another, or 0" in done.stderr) == (2, True)


def test_a_server_needs_no_torch():
    code = "import sys; import shop_env.serving.openenv.server; sys.exit('torch' in sys.modules)"
    assert run_python("-c", code).returncode == 0


def test_an_instance_that_was_closed_answers_nothing(tasks):
    environments = pytest.importorskip("shop_env.serving.openenv.environments")
    env = environments.ReplayedSteps(tasks, ["test"])
    env.reset(index=0)
    env.close()
    with pytest.raises(BadConfig, match="idle for too long"):
        env.reset(index=0)
