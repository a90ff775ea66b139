"""A result names its store, seed, configuration and code, and no host."""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from replay_sessions.demo_shop import SOURCE
from replay_sessions.foundation.provenance import provenance
from replay_sessions.store import SessionStore
from tests.demo_stores import demo_store_at
from tests.processes import ROOT


def test_provenance_names_store_seed_and_configuration(tmp_path):
    demo_store_at(tmp_path / "store", 3, seed=0)
    store = SessionStore.open(tmp_path / "store")
    made = provenance({"split": "test"}, store=store, seed=7)
    assert made["store"] == {
        "name": "store",
        "fingerprint": store.fingerprint,
        "sessions": 3,
        "source": SOURCE,
    }
    assert (made["seed"], made["config"], made["python"]) == (7, {"split": "test"}, platform.python_version())
    assert made["packages"]["msgspec"]
    assert json.loads(json.dumps(made)) == made


def test_provenance_holds_no_host_or_home_folder():
    made = json.dumps(provenance({}))
    names = {platform.node(), str(Path.home())}
    assert not [name for name in names if len(name) > 3 and name in made]


def test_a_commit_is_named_only_for_a_checkout_of_this_project(tmp_path):
    # A copy of the code inside somebody else's repository, as site-packages may be.
    shutil.copytree(ROOT / "replay_sessions", tmp_path / "site" / "replay_sessions")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert ran("print(provenance({})['commit'])", tmp_path / "site") == "None"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_a_checkout_names_its_commit():
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert provenance({})["commit"] == head.stdout.strip()


def test_provenance_loads_no_torch():
    assert ran("provenance({}); print('torch' in sys.modules)", ROOT) == "False"


def ran(code: str, folder: Path) -> str:
    command = [
        sys.executable,
        "-c",
        f"import sys; from replay_sessions.foundation.provenance import provenance; {code}",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()
