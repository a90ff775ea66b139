"""The sentences at the end of a run say what the figures say."""

import pytest

from agents.llm_grpo.final_table import verdicts
from agents.llm_grpo.presets import load_preset
from agents.results import Comparison

CONFIG = load_preset("tiny_cpu")
Interval = tuple[float, float]
UP, DOWN, AROUND = (0.01, 0.03), (-0.06, -0.04), (-0.01, 0.02)


def comparison(first: str, second: str, interval: Interval) -> Comparison:
    low, high = interval
    middle = (low + high) / 2
    return Comparison(first=first, second=second, metric="exact_accuracy", difference=middle, low=low, high=high)


def verdict_on(sampled: tuple[Interval, ...], greedy: tuple[Interval, ...]) -> str:
    (found,) = verdicts(
        [
            comparison(f"Shop-R1, {decoding}", f"{other}, {decoding}", interval)
            for decoding, intervals in (("T 0.6", sampled), ("greedy", greedy))
            for other, interval in zip(("SFT", "SFT, same time"), intervals, strict=False)
        ],
        CONFIG,
    )
    return found


@pytest.mark.parametrize(
    ("sampled", "greedy", "said"),
    [
        ((UP, UP), (AROUND, AROUND), "sampled, it is better than each that it is compared with; greedy, it cannot"),
        ((UP, UP), (AROUND, AROUND), "it sharpened the policy, but the likeliest reply is no better"),
        ((UP, UP), (UP, UP), "greedy, it is better than each that it is compared with"),
        ((AROUND, AROUND), (UP, UP), "sampled, it cannot be told apart; greedy, it is better"),
        ((UP, UP), (DOWN, DOWN), "greedy, it is worse than each that it is compared with"),
        ((UP, UP), (AROUND, DOWN), "greedy, it is not told apart from SFT, greedy, worse than SFT, same time, greedy"),
    ],
)
def test_the_sentence_follows_the_intervals(
    sampled: tuple[Interval, ...], greedy: tuple[Interval, ...], said: str
) -> None:
    found = verdict_on(sampled, greedy)
    assert said in found
    assert ("(not told apart from 0)" in found) == (AROUND in (*sampled, *greedy))


def test_a_sentence_does_not_take_in_phases_whose_labels_begin_alike() -> None:
    config = load_preset("tiny_cpu", "customer_r1_table4")
    first = comparison("SFT + RL, T 0.6", "SFT, T 0.6", UP)
    second = comparison("SFT + RL, w/o persona, T 0.6", "SFT + RL, T 0.6", DOWN)
    said = verdicts([first, second], config)
    assert [sentence.split(":")[0] for sentence in said] == ["SFT + RL", "SFT + RL, w/o persona"]
    assert "worse" not in said[0]


def test_without_grpo_there_is_nothing_to_say() -> None:
    assert verdicts([], CONFIG) == []
