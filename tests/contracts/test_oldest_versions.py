"""The versions of `make test-oldest` are the oldest that are allowed."""

import re
import tomllib

from tests.processes import ROOT


def test_the_oldest_versions_are_those_that_the_package_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    core = allowed(project["dependencies"])
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    tested = {name: without_zeros(version) for name, version in (line.split("==") for line in lines if line[0] != "#")}
    assert core.keys() <= tested.keys()
    further = [one for extra in ("reference", "recorder", "baselines", "test") for one in extras[extra]]
    everything = core | allowed([one for one in further if ">=" in one])
    assert tested == {name: everything[name] for name in tested}


def allowed(requirements: list[str]) -> dict[str, str]:
    return {name: without_zeros(version) for name, version in (one.split(">=") for one in requirements)}


def without_zeros(version: str) -> str:
    return re.sub(r"(\.0)+$", "", version)
