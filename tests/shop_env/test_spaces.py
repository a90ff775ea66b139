"""The text space: any Unicode, length only."""

import json

import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from shop_env.observation import observe
from shop_env.spaces import UnicodeText, observation_space


@given(st.text())
def test_every_string_belongs(text):
    assert text in UnicodeText()


@pytest.mark.parametrize("value", [None, 3, b"x", ["x"]])
def test_nothing_else_belongs(value):
    assert value not in UnicodeText()


def test_samples_belong_are_valid_text_and_follow_the_seed():
    space = UnicodeText(seed=1)
    samples = [space.sample() for _ in range(200)]
    assert all(sample in space for sample in samples)
    "".join(samples).encode()
    assert len(set(samples)) > 100
    assert samples == [again.sample() for again in [UnicodeText(seed=1)] for _ in range(200)]


def test_spaces_are_equal_when_their_limits_are():
    assert UnicodeText() == UnicodeText(seed=3)
    assert UnicodeText() != spaces.Text(5)
    assert observation_space() == observation_space()


def test_samples_of_the_observation_space_belong_and_survive_json():
    space = observation_space()
    space.seed(2)
    samples = [space.sample() for _ in range(20)]
    assert all(sample in space for sample in samples)
    restored = space.from_jsonable(json.loads(json.dumps(space.to_jsonable(samples))))
    assert restored == samples


def test_observations_belong(kettle_session):
    assert observe(kettle_session, 2) in observation_space()
