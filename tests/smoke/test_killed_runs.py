"""Killed at any moment, a run goes on as if nothing had been: kill -9, beside other load, many times."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from safetensors.torch import load_file

from tests.smoke.test_train_command import command, rows_of, small_run, store  # noqa: F401 - store is a fixture

KILLS = 20
CHECKPOINTS = ("sft", "shop_r1", "sft_longer")
# More steps than in the other tests of the command, and the state saved after each.
LONGER = ["--sft.stages.2.steps", "30", "--grpo.steps", "12", "--validation.times", "3", "--save-every-s", "0"]
BUSY = "while True: sum(range(10 ** 6))"


@pytest.fixture
def other_load() -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1)]
    yield
    for process in busy:
        process.kill()
        process.wait()


def run_until(words: list[str], seconds: float) -> bool:
    """Whether the run came to its end by itself; otherwise it was killed."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return False
    assert process.returncode == 0, said
    return True


@pytest.mark.slow
def test_a_run_killed_at_random_moments_ends_in_the_weights_of_an_undisturbed_one(
    store,  # noqa: F811 - the fixture
    tmp_path,
    other_load,
):
    straight = tmp_path / "straight"
    started = time.monotonic()
    assert run_until(command(*small_run(store, straight), *LONGER), seconds=1200)
    whole_run_s = time.monotonic() - started
    draw = random.Random(0)
    kills = runs = 0
    while kills < KILLS:
        out = tmp_path / f"killed-{runs}"
        runs += 1
        done = False
        while not done:
            begun = (out / "run.json").exists()
            words = command("--resume", str(out)) if begun else command(*small_run(store, out), *LONGER)
            done = run_until(words, draw.uniform(0.05, 0.7) * whole_run_s if kills < KILLS else 1200)
            kills += not done
        for name in CHECKPOINTS:
            ours, theirs = (load_file(folder / name / "model.safetensors") for folder in (out, straight))
            assert ours.keys() == theirs.keys()
            assert all((ours[key] == theirs[key]).all() for key in ours), (name, kills)
        assert rows_of(out) == rows_of(straight), kills
