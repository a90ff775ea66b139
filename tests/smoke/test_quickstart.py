"""docs/quickstart.ipynb runs in a real kernel, and prints what is kept in it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.json_files import read_json
from tests.processes import ROOT

pytestmark = pytest.mark.slow

NOTEBOOK = ROOT / "docs" / "quickstart.ipynb"


def texts_of(notebook: Path) -> list[str]:
    """What each cell printed or returned, as text; progress bars come and go."""
    cells = read_json(notebook)["cells"]
    return [
        "".join(
            line
            for output in cell["outputs"]
            if output["output_type"] != "display_data"
            for line in output.get("text") or output["data"]["text/plain"]
        )
        for cell in cells
        if cell["cell_type"] == "code"
    ]


def test_the_notebook_runs_and_prints_its_saved_output(tmp_path):
    pytest.importorskip("nbclient", reason="needs the extra notebook")
    ran = tmp_path / "ran.ipynb"
    ran.write_text(NOTEBOOK.read_text(encoding="utf-8"), encoding="utf-8")
    words = [sys.executable, "-m", "jupyter", "execute", "--inplace", "--kernel_name=python3", ran.name]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert texts_of(ran) == texts_of(NOTEBOOK)
    assert all(texts_of(NOTEBOOK))
    assert NOTEBOOK.stat().st_size < 100_000
