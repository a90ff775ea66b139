"""The wheel in an environment of its own, outside the checkout: it has all that the commands need."""

import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import metadata, version
from pathlib import Path

import pytest

from tests.processes import ROOT
from tests.smoke.test_train_command import SMALL

pytestmark = pytest.mark.slow

SOURCES = (
    "replay_sessions",
    "shop_env",
    "train",
    "agents",
    "benchmarks",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The bin folder of a new environment with the wheel; its dependencies are those of this one."""
    if int(version("setuptools").partition(".")[0]) < 77:
        pytest.skip(f"setuptools {version('setuptools')} is too old to build the wheel; 77 is needed")
    folder = tmp_path_factory.mktemp("wheel")
    source, environment = folder / "source", folder / "env"
    source.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
        else:
            shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, source], check=True)
    [wheel] = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    subprocess.run([*pip, "--python", python, "install", "--no-deps", wheel], check=True)
    site_packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    # A .pth of that folder is not read from here, so the checkout that it would add stays outside.
    (site_packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return environment / "bin"


def run(installed: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{installed}:/usr/bin:/bin", "HOME": str(folder), "OMP_NUM_THREADS": "1"}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)


def test_the_wheel_trains_and_reports_outside_the_checkout(installed, tmp_path):
    where = run(installed, tmp_path, "python", "-c", "import agents, train; print(agents.__file__, train.__file__)")
    assert where.stdout.count(str(installed.parent)) == 2, where
    shown = run(installed, tmp_path, "shop-r1", "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    made = run(installed, tmp_path, "shop-r1", "generate", "--sessions", "60", "--seed", "5", "--out", "store")
    assert made.returncode == 0, made.stderr
    flags = [word for key, value in SMALL.items() for word in (f"--{key}", str(value))]
    call = ("shop-r1", "train", "--preset", "tiny_cpu", "--store", "store", "--out", "runs/first", *flags)
    trained = run(installed, tmp_path, *call)
    assert trained.returncode == 0, trained.stderr
    reported = run(installed, tmp_path, "shop-r1", "report", "runs/first")
    assert reported.returncode == 0, reported.stderr
    assert (tmp_path / "runs" / "first" / "report.html").stat().st_size > 100_000


def test_foreign_agents_package_over_ours_is_named(installed, tmp_path):
    [package] = installed.parent.glob("lib/python*/site-packages/agents/__init__.py")
    ours = package.read_text()
    package.write_text("raise SystemExit('the foreign package runs')\n")
    try:
        done = run(installed, tmp_path, "shop-r1", "agents", "list")
    finally:
        package.write_text(ours)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: the package 'agents' that Python finds (")
    assert done.stderr.count("\n") == 1


def test_metadata_is_complete():
    about = metadata("shop-r1")
    for key in ("Summary", "License-Expression", "Keywords", "Author", "Project-URL", "Classifier", "Requires-Python"):
        assert about.get(key), key
    assert {"train", "vllm", "report", "notebook"} <= set(about.get_all("Provides-Extra") or [])
