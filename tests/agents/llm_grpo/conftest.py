"""The tiny policy of the tests of training."""

from tests.train.conftest import tiny as tiny
