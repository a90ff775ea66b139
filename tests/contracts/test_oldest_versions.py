"""The versions of `make test-oldest` are the oldest that are allowed."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_oldest_versions_are_those_that_the_package_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    allowed = dict(requirement.split(">=") for requirement in project["dependencies"])
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: re.sub(r"(\.0)+$", "", version) for name, version in tested.items()} == {
        name: re.sub(r"(\.0)+$", "", version) for name, version in allowed.items()
    }
