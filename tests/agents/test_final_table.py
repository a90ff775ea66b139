"""The sentences at the end of a run say what the figures say."""

import msgspec
import pytest

from agents.evaluate import evaluate
from agents.llm_grpo.final_table import over_best_agent, verdicts
from agents.llm_grpo.presets import load_preset
from agents.registry import make_agent
from agents.results import Comparison, summarise
from replay_sessions.store import SessionStore

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


def test_policies_are_held_against_the_best_agent_that_is_none(demo_store: SessionStore) -> None:
    records = {
        name: evaluate(make_agent(name, store=demo_store), demo_store, "all")
        for name in ("random", "majority", "copy_match")
    }
    config = msgspec.structs.replace(CONFIG, phases={"sft": CONFIG.phases["sft"]})
    records |= {"SFT, T 0.6": records["majority"], "SFT, greedy": records["copy_match"]}
    rows = [summarise(found, label=label, samples=20) for label, found in records.items()]
    sampled, greedy = over_best_agent(records, rows, config)
    assert [one.second for one in (sampled, greedy)] == ["copy_match", "copy_match"]
    exact = {row.label: row.figures["exact_accuracy"].value for row in rows}
    assert sampled.difference == pytest.approx(exact["majority"] - exact["copy_match"]) and sampled.difference < 0
    assert greedy.difference == 0 and not greedy.told_apart
    alone = msgspec.structs.replace(config, evaluation=msgspec.structs.replace(config.evaluation, agents=()))
    assert over_best_agent(records, rows, alone) == []
