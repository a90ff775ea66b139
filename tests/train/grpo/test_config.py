"""GRPO's options that exclude each other."""

import pytest

from replay_sessions.foundation.errors import BadConfig
from tests.train.test_grpo import CONFIG, changed


def test_a_balance_of_steps_needs_batches_of_steps():
    with pytest.raises(BadConfig, match=r"grpo\.balance is 'balanced'.*give grpo\.steps_per_batch"):
        changed(CONFIG, balance="balanced", steps_per_batch=None)
    assert changed(CONFIG, balance="balanced", steps_per_batch=4).balance == "balanced"
    assert changed(CONFIG, balance="uniform", steps_per_batch=None).balance == "uniform"
