"""Training of Qwen2.5's shapes on a fake GPU: no mixed devices, few synchronizations, and the estimated memory.

What a flight cannot show stands in tests/oracles/fake_accelerator.py.
"""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor

import pytest
import torch

from tests.oracles.fake_accelerator import DEVICE, FakeAccelerator
from tests.train.flight import REPLY, Flight, fly
from train.config import LoraConfig

pytestmark = pytest.mark.long
CHECKS = 4  # for what has ended, behind the tokens 1, 9 and 17; then all tokens are read


@pytest.fixture(scope="module")
def process() -> Iterator[Executor]:
    """Where the fake device is torch's accelerator; in this process other tests would meet it."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


FLIGHTS = {
    "0.5B-8k": Flight("0.5B", 8192),
    "3B-32k": Flight("3B", 32_768, gradient_checkpointing=True),
    "3B-32k-products": Flight("3B", 32_768, gradient_checkpointing=True, product_layers=2),
    "7B-65k-8-processes": Flight("7B", 65_536, gradient_checkpointing=True, processes=8),
    "3B-8k-lora": Flight("3B", 8192, gradient_checkpointing=True, lora=LoraConfig(rank=32)),
    "0.5B-8k-all-layers": Flight("0.5B", 8192, layers=None),
    # What is free suffices for the kv_cache of one of two sessions, so that they are sampled one by one.
    "3B-32k-lora-all-layers": Flight(
        "3B", 32_768, gradient_checkpointing=True, lora=LoraConfig(rank=32), layers=None, sessions=2, free_gib=6.9
    ),
    "3B-32k-full-all-layers": Flight("3B", 32_768, gradient_checkpointing=True, layers=None, sessions=2, free_gib=12.5),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if "all" in name else ()) for name in FLIGHTS]
)
def test_a_step_stays_on_the_device_and_takes_the_estimated_memory(name, process):
    """The estimated peak is within 10% of each phase's; the second of two steps leaves no more than the first."""
    flight = FLIGHTS[name]
    log = process.submit(fly, flight).result()
    for phase, estimated in log.estimated.items():
        found = max(log.peaks[phase], log.peaks["sample"] if phase == "grpo" else 0)
        print(f"{phase}: estimated {estimated.peak / 2**30:.2f} GiB, found {found / 2**30:.2f}")
        assert estimated.peak == pytest.approx(found, rel=0.1), phase
        assert log.alive[f"{phase} 0"] == log.alive[f"{phase} 1"], "a step leaves something on the device"
    # Also the first call, with the trial of layers.
    assert max(log.sampling) <= flight.free_gib * 2**30, "sampling takes more than it found free"
    batches, packs = len(log.drawing) // REPLY, max(2, flight.sessions)
    assert (batches > 1) == (flight.sessions > 1)
    # SFT: its losses, the norm. GRPO: self-certainty of each pack, its sums, the norm. Sampling: CHECKS of a batch.
    expected = {"sft": 2, "sample": batches * CHECKS, "grpo": 2 + packs}
    assert {phase: syncs.total() for phase, syncs in log.syncs.items()} == expected
    # Two steps of two packs each; the first draw finds the cache of the prompts alone.
    assert len(set(log.drawing[1:REPLY])) == 1, "sampling takes memory as it goes on"


def count_faults() -> tuple[str, int, int]:
    """The error of a tensor on the host among those of the device; waits of an `.item()`; bytes that are kept."""
    with FakeAccelerator() as gpu:
        weights, alive, error = torch.ones(256, device=DEVICE), gpu.alive, ""
        try:
            weights + torch.ones(256)
        except RuntimeError as mixed:
            error = str(mixed)
        weights.max().item()
        kept = weights * 2
        return error, gpu.syncs.total(), gpu.alive - alive - kept.nbytes


def test_the_fake_gpu_finds_planted_faults(process):
    error, waits, other_bytes = process.submit(count_faults).result()
    assert "Expected all tensors to be on the same device" in error
    assert (waits, other_bytes) == (1, 0)
