"""The command `benchmarks.coefficients`: planted coefficients lie in their intervals, and the files are written."""

import json
from pathlib import Path

import pytest

from benchmarks.coefficients import main
from replay_sessions.store import StoreWriter
from replay_sessions.store.manifest import SplitPlan
from tests.agents.baselines.test_choice_model import PRICE, RATING, planted_sessions


@pytest.mark.long
def test_planted_effects_lie_in_their_intervals(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "store", source="planted", splits=SplitPlan(by="official")) as writer:
        for session in planted_sessions(1500):
            writer.write(session)
    assert main(["--store", str(tmp_path / "store"), "--out", str(tmp_path / "out")]) == 0
    effects = json.loads((tmp_path / "out/coefficients.json").read_text(encoding="utf-8"))["results"]
    by_name = {effect["effect"]: effect for effect in effects}
    for name, planted in (("price up by 10% of the budget", 0.1 * PRICE), ("one star more", RATING)):
        effect = by_name[name]
        assert abs(effect["log_odds"] - planted) < 2.5 * effect["standard_error"] < 1
    assert (tmp_path / "out/coefficients.csv").read_text(encoding="utf-8").count("\n") == len(effects) + 1
    assert (tmp_path / "out/coefficients.png").stat().st_size > 5_000
