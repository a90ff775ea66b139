"""Measures the speed of the env on one core, with resets, beside the same env with the package `rouge_score`.

    python -m benchmarks.speed env

`env.step.small` has pages of about 1 kB, `env.step.large` pages of 600 kB, both with product names as long as in a real
shop (workload.py). A first run, which is not timed, loads all sessions into memory.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import gymnasium
import msgspec

import shop_env  # noqa: F401 - registers ShopR1-v0
from benchmarks.speed.measurement import Measurement, Options, compare, median_times
from benchmarks.speed.workload import replies_to, with_long_names
from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.demo_shop.shop import PageSize
from replay_sessions.schema import Session
from replay_sessions.store import StoreWriter

_LARGE = 600_000  # characters
# The large sessions fit into the env's cache, once per reward.
_SESSIONS: dict[str, tuple[int, PageSize]] = {"small": (500, "small"), "large": (25, "realistic")}
_STEPS = 20_000  # in each run


def measure(options: Options) -> Iterator[Measurement]:
    """Yields the steps per second of sessions on small and on large pages."""
    with tempfile.TemporaryDirectory() as folder:
        for kind, (count, page_size) in _SESSIONS.items():
            sessions = [with_long_names(one) for one in generate_sessions(count, 0, page_size) if len(one.steps) > 1]
            if kind == "large":
                sessions = list(map(_enlarge, sessions))
            store = str(Path(folder) / kind)
            with StoreWriter(store, source=SOURCE) as writer:
                for session in sessions:
                    writer.write(session)
            # The first action of a session is not scored.
            tasks = _build_tasks(store, [texts[1:] for texts in replies_to(sessions)])
            seconds = median_times(tasks, options.runs)
            yield compare(f"env.step.{kind}", seconds, "rouge_score", options.runs, unit="steps/s", amount=_STEPS)


def _enlarge(session: Session) -> Session:
    """Returns the session with pages of 600 kB, which repeat the content of the original pages."""
    steps = []
    for step in session.steps:
        body = step.page.partition("<body>")[2].removesuffix("</body></html>")
        copies = (_LARGE - len(step.page)) // len(body) + 1
        page = step.page.replace("</body>", body.replace(' name="', ' data-name="') * copies + "</body>")
        steps.append(msgspec.structs.replace(step, page=page))
    return msgspec.structs.replace(session, steps=tuple(steps))


def _build_tasks(store: str, replies: Sequence[list[str]]) -> dict[str, Callable[[], object]]:
    make = partial(gymnasium.make, "ShopR1-v0", store=store, split="all", order="storage")
    rewards = {"ours": "shop_r1", "rouge_score": {"similarity": "rouge_score"}}
    return {label: partial(_play, make(reward=reward), replies) for label, reward in rewards.items()}


def _play(env: gymnasium.Env[Any, Any], replies: Sequence[list[str]]) -> None:
    env.reset(seed=0)  # the seed restarts the order of sessions
    steps = 0
    for number, texts in enumerate(cycle(replies)):
        if steps >= _STEPS:
            return
        if number:
            env.reset()
        for text in texts:
            env.step(text)
        steps += len(texts)
