import tomllib

import pytest

from tests.processes import ROOT


def test_openenvs_manifest_has_the_version_of_the_package():
    yaml = pytest.importorskip("yaml", reason="needs the extra test")
    manifest = yaml.safe_load((ROOT / "shop_env" / "serving" / "openenv.yaml").read_text(encoding="utf-8"))
    assert manifest["version"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
