"""The one sentence at the end of a run says what the figures say."""

import pytest

from agents.llm_grpo.final_table import Comparison, verdict


def comparison(first: str, second: str, low: float, high: float) -> Comparison:
    middle = (low + high) / 2
    return Comparison(first=first, second=second, metric="exact_accuracy", difference=middle, low=low, high=high)


@pytest.mark.parametrize(
    ("sampled", "greedy", "said"),
    [
        ((0.04, 0.06), (-0.01, 0.01), "when sampling only"),
        ((0.04, 0.06), (0.01, 0.03), "under both decodings"),
        ((-0.01, 0.02), (0.01, 0.03), "did not raise"),
        ((-0.06, -0.04), (-0.06, -0.04), "did not raise"),
    ],
)
def test_the_sentence_follows_the_intervals(
    sampled: tuple[float, float], greedy: tuple[float, float], said: str
) -> None:
    found = verdict(
        [comparison("Shop-R1, T 0.6", "SFT, T 0.6", *sampled), comparison("Shop-R1, greedy", "SFT, greedy", *greedy)]
    )
    assert said in found
    assert ("(not told apart from 0)" in found) == (sampled[0] < 0 < sampled[1] or greedy[0] < 0 < greedy[1])


def test_without_grpo_there_is_nothing_to_say() -> None:
    assert verdict([]) == ""
