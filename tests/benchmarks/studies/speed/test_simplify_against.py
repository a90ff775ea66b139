"""Two working trees are measured by what each of them runs."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.studies.speed.simplify_against import _BARE, main

pytestmark = pytest.mark.long


@pytest.fixture
def slow_tree(tmp_path: Path) -> Path:
    """A tree whose simplifier burns processor time."""
    package = tmp_path / "slow" / "replay_sessions" / "simplify"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").write_text("def simplify(page): sum(range(3_000_000))\n")
    return tmp_path / "slow"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "raw_pages").mkdir()
    for number in range(3):
        page = gzip.compress(f"<body><a href=/{number}>Kettle {number}</a></body>".encode())
        (tmp_path / "raw_pages" / f"{number}.html.gz").write_bytes(page)
    return tmp_path


def test_the_other_tree_runs_its_own_simplifier(slow_tree: Path, data: Path) -> None:
    out = data / "figures.json"
    assert main([str(slow_tree), "--data", str(data), "--runs", "1", "--json", str(out)]) == 0
    figures = json.loads(out.read_text())
    assert figures["pages"] == 3
    assert figures["fresh"]["ratio"] > 2
    assert figures["seen"]["ratio"] > 2
    assert figures["seen"]["interpreted_ratio"] > 2
    assert figures["seen"]["bare_ratio"] > 2


def test_bare_does_without_what_it_says() -> None:
    page = "<style>.h {display: none}</style><b class=h>Hidden</b><ul>"
    page += "".join(
        f"<li><h3>{name}</h3><a href=/{name}>Buy<i>-20%</i></a><a href=#>Like</a>" for name in ("Cup", "Pan")
    )
    seen = {}
    for before in ("", _BARE):
        program = f"{before}\nfrom replay_sessions.simplify import simplify\nprint(simplify({page!r}).html)"
        seen[before] = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "SHOP_R1_INTERPRETED": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    assert "Hidden" not in seen[""]
    assert all(f'"{name}.buy"' in seen[""] for name in ("cup", "pan"))
    assert "Hidden" in seen[_BARE]
    assert "cup." not in seen[_BARE]


def test_what_cannot_be_measured_is_told(
    slow_tree: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(slow_tree), "--data", str(tmp_path / "gone")]) == 2
    assert "no *.html.gz" in capsys.readouterr().err
    assert main([str(tmp_path), "--data", str(data)]) == 2
    assert "no replay_sessions/simplify" in capsys.readouterr().err
    (slow_tree / "replay_sessions" / "simplify" / "__init__.py").write_text("def simplify(page): 1 / 0\n")
    assert main([str(slow_tree), "--data", str(data)]) == 2
    assert "a tree's simplifier ended at 0.html.gz" in capsys.readouterr().err
