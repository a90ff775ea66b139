"""What the words of the training command make of a preset."""

from pathlib import Path

import pytest

from agents.llm_grpo import config as configs
from agents.llm_grpo.run_options import prepare
from train.config import Precision


@pytest.mark.parametrize("usual", ["float32", "bfloat16_autocast"])
def test_auto_precision_is_definite_in_the_configuration_of_a_run(
    usual: Precision, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run that goes on elsewhere keeps what it began in, so what it notes is never `auto`."""
    monkeypatch.setattr(configs, "usual_precision", lambda: usual)
    call = ["--preset", "smollm2_cpu", "--out", str(tmp_path)]
    assert prepare(call)[2].model.precision == usual
    assert prepare([*call, "--model.precision", "float32"])[2].model.precision == "float32"
    assert prepare([*call, "--model.precision", "bfloat16_autocast"])[2].model.precision == "bfloat16_autocast"
