"""How near 32 requests at once come to what a server can do: printed, not judged (`pytest -m slow -s`)."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents.prompting.agent import PromptingAgent
from replay_sessions.store import SessionStore
from shop_env.evaluation.generate import generate_replies
from shop_env.evaluation.scored_steps import ScoredStep, scored_steps
from tests.demo_stores import demo_store_at

AT_ONCE = 32
LATENCY_S = 0.25
STEPS = 2000


@contextmanager
def server(*words: str) -> Iterator[str]:
    """A scripted server in a process of its own, so that it and the agent do not share one interpreter's time."""
    command = [sys.executable, "-m", "tests.agents.prompting.scripted_server", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_thirty_two_at_once_keep_a_server_busy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo_store_at(tmp_path / "store", 500, seed=11)
    store = SessionStore.open(tmp_path / "store")
    with server("--latency-s", str(LATENCY_S), "--slots", str(AT_ONCE)) as base_url:
        agent = PromptingAgent(base_url=base_url, model="m", cache=str(tmp_path / "asked"), concurrency=AT_ONCE)
        steps: list[ScoredStep] = [step for step, _ in zip(scored_steps(store, "all"), range(STEPS), strict=False)]
        started, worked = time.monotonic(), time.process_time()
        answers = list(generate_replies(agent, steps))
        taken_s, cpu_s = time.monotonic() - started, time.process_time() - worked
        agent.close()
    assert len(answers) == STEPS
    assert all(isinstance(answer, str) for _, answer in answers)
    limit = AT_ONCE / LATENCY_S
    with capsys.disabled():
        print(f"\n{STEPS} steps, {AT_ONCE} at once: {STEPS / taken_s:.1f} a second, the server's limit is {limit:.1f};")
        print(f"{1000 * cpu_s / STEPS:.2f} ms of this process's own work a step")
