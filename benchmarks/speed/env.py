"""Speed of the env on one core, resets included, beside the same env with the package `rouge_score`.

    python -m benchmarks.speed env

`env.step.small` is pages of about 1 kB, `env.step.large` pages of 600 kB, both with product names as long as a real
shop's (workload.py). Sessions have been played before, so that none is read from disk.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

import gymnasium
import msgspec

import shop_env  # noqa: F401 - registers ShopR1-v0
from benchmarks.speed.measurement import Measurement, Options, compare_rates, median_times
from benchmarks.speed.workload import replies_to, with_long_names
from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.schema import Session
from replay_sessions.store import StoreWriter

Replies = dict[str, list[str]]  # by session, one per step

_RUNS = 9
_LARGE = 600_000  # characters
_SESSIONS = {"small": 500, "large": 25}  # the large ones fit into the env's cache, once per reward
_STEPS = 20_000  # in each run


def measure(options: Options) -> Iterator[Measurement]:
    """Replays sessions one by one, on small and on large pages."""
    runs = options.get_runs(_RUNS)
    with tempfile.TemporaryDirectory() as folder:
        for kind in _SESSIONS:
            sessions, store = _generate(kind), str(Path(folder) / kind)
            with StoreWriter(store, source=SOURCE) as writer:
                for session in sessions:
                    writer.write(session)
            replies = {s.session_id: texts for s, texts in zip(sessions, replies_to(sessions), strict=True)}
            yield _single(f"env.step.{kind}", store, replies, runs)


def _generate(kind: str) -> list[Session]:
    page_size: Literal["small", "realistic"] = "realistic" if kind == "large" else "small"
    sessions = [session for session in generate_sessions(_SESSIONS[kind], 0, page_size) if len(session.steps) > 1]
    sessions = list(map(with_long_names, sessions))
    return list(map(_enlarge, sessions)) if kind == "large" else sessions


def _enlarge(session: Session) -> Session:
    """The session with pages of 600 kB: their content repeated."""
    steps = []
    for step in session.steps:
        body = step.page.partition("<body>")[2].removesuffix("</body></html>")
        copies = (_LARGE - len(step.page)) // len(body) + 1
        page = step.page.replace("</body>", body.replace(' name="', ' data-name="') * copies + "</body>")
        steps.append(msgspec.structs.replace(step, page=page))
    return msgspec.structs.replace(session, steps=tuple(steps))


def _single(name: str, store: str, replies: Replies, runs: int) -> Measurement:
    tasks: dict[str, Callable[[], object]] = {}
    for label, reward in (("ours", "shop_r1"), ("rouge_score", {"similarity": "rouge_score"})):
        env = gymnasium.make("ShopR1-v0", store=store, split="all", order="storage", reward=reward)
        # The first action of a session is not scored.
        tasks[label] = partial(_play, env, [texts[1:] for texts in replies.values()])
    return compare_rates(name, "steps/s", _STEPS, median_times(tasks, runs), "rouge_score", runs)


def _play(env: gymnasium.Env[Any, Any], replies: Sequence[list[str]]) -> None:
    env.reset(seed=0)  # a seed begins the order anew
    steps = 0
    for number, texts in enumerate(cycle(replies)):
        if steps >= _STEPS:
            return
        if number:
            env.reset()
        for text in texts:
            env.step(text)
        steps += len(texts)
