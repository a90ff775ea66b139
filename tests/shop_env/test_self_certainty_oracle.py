"""The oracle of self-certainty against values computed by hand."""

import math
from typing import get_args

import pytest

from shop_env.reward.score import SelfCertainty
from tests.oracles.self_certainty import DEFINITIONS, eq3, kl_policy_uniform, kl_uniform_policy, softmax


def test_two_words_by_hand():
    # p = (3/4, 1/4), U = (1/2, 1/2)
    p = [[0.75, 0.25]]
    assert kl_uniform_policy(p) == pytest.approx(0.5 * math.log(2 / 3) + 0.5 * math.log(2), rel=1e-14)
    assert kl_policy_uniform(p) == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5), rel=1e-14)
    assert eq3(p) == kl_policy_uniform(p) / 2
    assert [definition([softmax([3.0] * 4)]) for definition in DEFINITIONS.values()] == pytest.approx(
        [0.0] * 3, abs=1e-15
    )


def test_every_definition_that_the_reward_offers_has_an_oracle():
    assert set(get_args(SelfCertainty)) == set(DEFINITIONS)
