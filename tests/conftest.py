"""Shared by all tests: where the real data lies, how many threads compute, and that Ctrl-C reaches what they start."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# As many processes test as there are cores, and models are tiny: threads that wait for one another would take several
# times as long as one does. Said before anything loads numpy or torch, and to the commands that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# As in an activated environment, so that hints begin with `shop-r1` whatever started the tests.
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])

# What a shell starts in the background ignores Ctrl-C, and hands that on to the commands that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="module")
def restored_threads() -> Iterator[None]:
    """Takes back the number of threads that training in the tests' own process sets."""
    yield
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of third-party test data, which is never part of the repository; tests skip where it is absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SHOP_R1_TEST_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no test data at {folder}: set SHOP_R1_TEST_DATA to the folder that holds it")
    return folder
