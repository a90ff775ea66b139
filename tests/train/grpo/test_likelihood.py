"""Whether replies can be compared by the likelihood of the logged action."""

from contextlib import nullcontext

import pytest

from replay_sessions.foundation.errors import BadConfig
from train.grpo.likelihood import check_rationales


@pytest.mark.parametrize(
    ("no_rationale", "malformed", "cut", "is_refused"),
    [(1.0, 0.0, 0.0, True), (0.25, 0.5, 0.25, True), (0.5, 0.25, 0.125, False), (0.0, 0.75, 0.25, False)],
)
def test_a_batch_in_which_no_readable_reply_has_a_rationale_is_refused(no_rationale, malformed, cut, is_refused):
    with pytest.raises(BadConfig, match="compares rationales") if is_refused else nullcontext():
        check_rationales({"no_rationale": no_rationale, "malformed": malformed, "cut": cut})
