"""What self-certainty pays, against the trainer's own definitions on small vocabularies, and its bounds."""

import math

import numpy as np
import pytest
import torch

from benchmarks.studies.reward_hacking.certainty import (
    DEFINITIONS,
    compute_certainty,
    compute_gap,
    find_crossings,
    upper_bound,
)
from shop_env.reward import REWARD_PRESETS
from shop_env.reward.score import SelfCertainty
from train.policy import self_certainty


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("vocabulary", [2, 7, 433])
def test_the_curve_is_the_trainer_s_self_certainty_of_one_logit_above_all_others(
    definition: SelfCertainty, vocabulary: int
) -> None:
    log_rest = np.linspace(-60.0, math.log((vocabulary - 1) / vocabulary), 40)
    logits = torch.zeros(len(log_rest), vocabulary, dtype=torch.float64)
    logits[:, 1] = torch.tensor(compute_gap(log_rest, vocabulary))
    expected = self_certainty(torch.log_softmax(logits, dim=-1), definition).numpy()
    assert compute_certainty(log_rest, vocabulary, definition) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_only_the_first_definition_grows_without_end() -> None:
    deep = np.array([-1e2, -1e3, -1e4])
    for vocabulary in (433, 151_936):
        found = {definition: compute_certainty(deep, vocabulary, definition) for definition in DEFINITIONS}
        assert np.diff(found["kl_uniform_policy"]).min() > 800
        for definition in ("kl_policy_uniform", "eq3"):
            assert found[definition] == pytest.approx([upper_bound(vocabulary, definition)] * 3)
    assert upper_bound(151_936, "kl_policy_uniform") == pytest.approx(11.93, abs=0.005)


def test_crossings_pay_exactly_the_other_part_and_none_where_it_cannot_be_reached() -> None:
    reward = REWARD_PRESETS["shop_r1"]
    found = find_crossings(reward, (433, 151_936))
    assert {(one.definition, one.gap is None) for one in found} == {
        ("kl_uniform_policy", False),
        ("kl_policy_uniform", True),
        ("eq3", True),
    }
    for one in found:
        if one.rest is not None:
            log_rest = np.array([one.rest * math.log(10)])
            paid = reward.self_certainty_weight * compute_certainty(log_rest, one.vocabulary, "kl_uniform_policy")[0]
            assert paid == pytest.approx(one.points, rel=1e-9)
    points = {one.prize: one.points for one in found}
    assert points == {"name present": 0.2, "type of action": 0.3, "format": 0.5}
