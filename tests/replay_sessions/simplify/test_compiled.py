"""The simplifier compiled and interpreted: the same pages, and never what was compiled from another source."""

import gzip
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import replay_sessions
from replay_sessions.foundation.speedups import IS_COMPILED
from tests.replay_sessions.simplify.test_mutated_pages import WRITTEN, mutated_page

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not IS_COMPILED, reason="the simplifier is not compiled: make compiled"),
]

_ROOT = Path(replay_sessions.__file__).parents[1]
_DIGEST = """
import hashlib, pickle, sys
from pathlib import Path
from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.simplify import IS_COMPILED, simplify, walk
digest = hashlib.sha256()
for page in pickle.loads(Path(sys.argv[1]).read_bytes()):
    try:
        simplified = simplify(page)
        outcome = repr((simplified.html, simplified.elements, simplified.removed))
    except ShopR1Error as error:
        outcome = str(error)
    digest.update(outcome.encode("utf-8", "surrogatepass"))
print(IS_COMPILED, Path(walk.__file__).suffix, digest.hexdigest())
"""


def _loaded_and_digest(pages: Path, root: Path = _ROOT, **variables: str) -> list[str]:
    """Whether the simplifier says that it is compiled, the suffix of what is loaded, and what it makes of pages."""
    environment = {name: value for name, value in os.environ.items() if name != "SHOP_R1_INTERPRETED"} | variables
    command = [sys.executable, "-c", _DIGEST, str(pages)]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def _written(pages: list[bytes | str], folder: Path) -> Path:
    file = folder / "pages"
    file.write_bytes(pickle.dumps(pages))
    return file


def test_both_write_the_same(tmp_path: Path) -> None:
    pages = _written([mutated_page([WRITTEN], 99, number) for number in range(300)], tmp_path)
    compiled = _loaded_and_digest(pages)
    interpreted = _loaded_and_digest(pages, SHOP_R1_INTERPRETED="1")
    assert (compiled[:2], interpreted[:2]) == (["True", ".so"], ["False", ".py"])
    assert compiled[2] == interpreted[2]


@pytest.mark.slow
def test_both_write_the_same_of_real_pages_and_of_ten_thousand_mutated_ones(tmp_path: Path, shared_data: Path) -> None:
    real = [gzip.decompress(file.read_bytes()) for file in sorted((shared_data / "raw_pages").rglob("*.html.gz"))]
    mutated = [mutated_page([WRITTEN, *real], 98, number) for number in range(10_000)]
    pages = _written([*real, *mutated], tmp_path)
    assert _loaded_and_digest(pages)[2] == _loaded_and_digest(pages, SHOP_R1_INTERPRETED="1")[2]


def test_a_changed_source_counts_in_a_checkout(tmp_path: Path) -> None:
    pages = _written([WRITTEN], tmp_path)
    copy = tmp_path / "checkout"
    shutil.copytree(_ROOT / "replay_sessions", copy / "replay_sessions")
    assert _loaded_and_digest(pages, copy)[:2] == ["True", ".so"]
    changed = copy / "replay_sessions" / "simplify" / "recipes" / "selectors.py"
    changed.touch()
    assert _loaded_and_digest(pages, copy)[:2] == ["True", ".so"]  # a package: nobody changes sources there
    (copy / "setup.py").touch()
    assert _loaded_and_digest(pages, copy)[:2] == ["False", ".py"]
    shutil.copystat(_ROOT / "replay_sessions" / "simplify" / "recipes" / "selectors.py", changed)
    assert _loaded_and_digest(pages, copy)[:2] == ["True", ".so"]


_CARDS = "".join(f"<li><h3>Kettle</h3><a href=/dp/B0{n:08}>Kettle</a><a href=/r/{n}>Reviews</a>" for n in range(5))


@pytest.mark.parametrize("is_interpreted", ["", "1"])
def test_a_page_leaves_no_circle_of_references(is_interpreted: str) -> None:
    """Nothing frees those while an import has the collector paused."""
    program = (
        "import gc\n"
        "from replay_sessions.simplify import IS_COMPILED, simplify\n"
        f"page = '<h1>Kettles</h1><ul>{_CARDS}</ul>'\n"
        "simplify(page)\n"
        "gc.collect()\n"
        "gc.disable()\n"
        "simplify(page)\n"
        "print(IS_COMPILED, gc.collect())\n"
    )
    environment = {**os.environ, "SHOP_R1_INTERPRETED": is_interpreted}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(not is_interpreted), "0"]
