"""Speed of the env on one core, resets included, beside the same env with the package `rouge_score`.

    python -m benchmarks.speed env

`env.step.small` is pages of about 1 kB, `env.step.large` pages of 600 kB, both with product names as long as a real
shop's; `env.step.short_names` is the demo shop as it is (workload.py). Sessions have been played before, so that none
is read from disk.

`env.vector.16.…` is 16 envs side by side (Gymnasium's SyncVectorEnv), each with its own order of sessions, made with
`with_info=False` and, beside it, with infos. Steps of single envs are counted, the step at which an ended env starts
its next session among them.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import msgspec

import shop_env  # noqa: F401 - registers ShopR1-v0
from benchmarks.speed.measurement import Measurement, median_times
from benchmarks.speed.workload import replies_to, with_long_names
from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.schema import Session
from replay_sessions.store import StoreWriter

if TYPE_CHECKING:
    from benchmarks.speed.__main__ import Options

__all__ = ["measure"]

Replies = dict[str, list[str]]  # by session, one per step

_RUNS = 9
_ENVS = 16
_LARGE = 600_000  # characters
_SESSIONS = {"small": 500, "large": 25, "short_names": 500}  # the large ones fit into the env's cache, once per reward
_STEPS = 20_000  # in each run
_VECTOR_STEPS = 1_500


def measure(options: "Options") -> Iterator[Measurement]:
    """Replays sessions one by one, then in 16 envs side by side, on small and on large pages."""
    runs = options.runs or _RUNS
    with tempfile.TemporaryDirectory() as folder:
        for kind in _SESSIONS:
            sessions, store = _sessions(kind), str(Path(folder) / kind)
            with StoreWriter(store, source=SOURCE) as writer:
                for session in sessions:
                    writer.write(session)
            replies = {s.session_id: texts for s, texts in zip(sessions, replies_to(sessions), strict=True)}
            yield _single(f"env.step.{kind}", store, replies, runs)
            if kind != "short_names":
                yield _vector(f"env.vector.{_ENVS}.{kind}", store, replies, runs)


def _sessions(kind: str) -> list[Session]:
    page_size: Literal["small", "realistic"] = "realistic" if kind == "large" else "small"
    found = [session for session in generate_sessions(_SESSIONS[kind], 0, page_size) if len(session.steps) > 1]
    if kind == "short_names":
        return found
    found = [with_long_names(session) for session in found]
    return [_enlarged(session) for session in found] if kind == "large" else found


def _enlarged(session: Session) -> Session:
    """The session with pages of 600 kB: what stands on them, again and again."""
    steps = []
    for step in session.steps:
        body = step.page.partition("<body>")[2].removesuffix("</body></html>")
        copies = (_LARGE - len(step.page)) // len(body) + 1
        page = step.page.replace("</body>", body.replace(' name="', ' data-name="') * copies + "</body>")
        steps.append(msgspec.structs.replace(step, page=page))
    return msgspec.structs.replace(session, steps=tuple(steps))


def _single(name: str, store: str, replies: Replies, runs: int) -> Measurement:
    tasks: dict[str, Callable[[], object]] = {}
    for label, reward in (("ours", "shop_r1"), ("peer", {"similarity": "rouge_score"})):
        env = gymnasium.make("ShopR1-v0", store=store, split="all", order="storage", reward=reward)
        tasks[label] = _player(env, [texts[1:] for texts in replies.values()])  # the first action is not scored
    seconds = median_times(tasks, runs)
    return _measurement(name, _STEPS, seconds, "rouge_score", runs)


def _player(env: gymnasium.Env[Any, Any], replies: Sequence[list[str]]) -> Callable[[], None]:
    def play() -> None:
        env.reset(seed=0)  # a seed begins the order anew
        steps = number = 0
        while steps < _STEPS:
            if steps:
                env.reset()
            for reply in replies[number % len(replies)]:
                env.step(reply)
            steps += len(replies[number % len(replies)])
            number += 1

    return play


def _vector(name: str, store: str, replies: Replies, runs: int) -> Measurement:
    actions = _recorded_actions(store, replies)
    tasks: dict[str, Callable[[], object]] = {}
    for label, with_info in (("ours", False), ("peer", True)):
        tasks[label] = _vector_player(_make_vec(store, with_info=with_info), actions)
    seconds = median_times(tasks, runs)
    return _measurement(name, _VECTOR_STEPS * _ENVS, seconds, "with_info", runs)


def _make_vec(store: str, **options: Any) -> Any:
    return gymnasium.make_vec("ShopR1-v0", num_envs=_ENVS, store=store, split="all", **options)


def _recorded_actions(store: str, replies: Replies) -> list[tuple[str, ...]]:
    """What 16 envs are to be sent after a reset with seed 0; the reply that an ended env gets is ignored."""
    envs = _make_vec(store)
    observations, infos = envs.reset(seed=0)
    actions = []
    for _ in range(_VECTOR_STEPS):
        places = zip(infos["session_id"], observations["step"], strict=True)
        actions.append(tuple("".join(replies[session][step : step + 1]) for session, step in places))
        observations, _, _, _, infos = envs.step(actions[-1])
    return actions


def _vector_player(envs: Any, actions: Sequence[tuple[str, ...]]) -> Callable[[], None]:
    def play() -> None:
        envs.reset(seed=0)
        for of_step in actions:
            envs.step(of_step)

    return play


def _measurement(name: str, steps: int, seconds: dict[str, float], peer: str, runs: int) -> Measurement:
    ours, peers = steps / seconds["ours"], steps / seconds["peer"]
    return Measurement(
        name=name, value=ours, unit="steps/s", runs=runs, peer=peer, peer_value=peers, ratio=ours / peers
    )
