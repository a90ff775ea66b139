"""The sentences at the end of a run say what the figures say."""

from pathlib import Path

import msgspec
import pytest

from agents.llm_grpo.evaluation import over_best_agent, table_rows, verdicts
from agents.llm_grpo.presets import load_preset
from agents.registry import make_agent
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.store import SessionStore
from shop_env.evaluation.comparing import Comparison
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.results import summarise
from tests.demo_stores import demo_store_at

CONFIG = load_preset("tiny_cpu")
Interval = tuple[float, float]
UP, DOWN, AROUND = (0.01, 0.03), (-0.06, -0.04), (-0.01, 0.02)


def comparison(first: str, second: str, interval: Interval) -> Comparison:
    low, high = interval
    p_value = 0.5 if low <= 0 <= high else 0.01
    return Comparison(
        first=first,
        second=second,
        metric="exact_accuracy",
        difference=(low + high) / 2,
        low=low,
        high=high,
        p_value=p_value,
        clusters=15,
        steps=300,
    )


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
        (
            (UP, UP),
            (AROUND, AROUND),
            "significantly better than each that it is compared with; greedy, it is not",
        ),
        ((UP, UP), (AROUND, AROUND), "it sharpened the policy, but the likeliest reply is no better"),
        ((UP, UP), (UP, UP), "greedy, it is significantly better than each that it is compared with"),
        ((AROUND, AROUND), (UP, UP), "sampled, it is not significantly different; greedy, it is significantly better"),
        ((UP, UP), (DOWN, DOWN), "greedy, it is significantly worse than each that it is compared with"),
        (
            (UP, UP),
            (AROUND, DOWN),
            "it is not significantly different from SFT, greedy, significantly worse than SFT, same time",
        ),
    ],
)
def test_the_sentence_follows_the_intervals(
    sampled: tuple[Interval, ...], greedy: tuple[Interval, ...], said: str
) -> None:
    found = verdict_on(sampled, greedy)
    assert said in found
    assert ("not significantly different" in found) == (AROUND in (*sampled, *greedy))


def test_a_sentence_does_not_take_in_phases_whose_labels_begin_alike() -> None:
    config = load_preset("tiny_cpu", "customer_r1_table4")
    first = comparison("SFT + RL, T 0.6", "SFT, T 0.6", UP)
    second = comparison("SFT + RL, w/o persona, T 0.6", "SFT + RL, T 0.6", DOWN)
    said = verdicts([first, second], config)
    assert [sentence.split(":")[0] for sentence in said] == ["SFT + RL", "SFT + RL, w/o persona"]
    assert "worse" not in said[0]


def test_the_most_probable_action_is_judged_by_itself() -> None:
    decodings = {"T 0.6": UP, "greedy": UP, "most probable action": AROUND}
    comparisons = [comparison(f"Shop-R1, {name}", f"SFT, {name}", interval) for name, interval in decodings.items()]
    (found,) = verdicts(comparisons, CONFIG)
    assert "greedy, it is significantly better than each that it is compared with; by the most probable" in found
    assert "by the most probable action, it is not significantly different (exact match" in found


def test_each_policy_has_a_row_by_its_most_probable_action_and_the_oracle_none() -> None:
    rows = {spec.label: spec for _, spec, _ in table_rows(CONFIG, [], demo_shop=True)}
    spec = rows["SFT, most probable action"]
    assert spec.target == "sft" and spec.arguments["decode"] == "most_probable_action"
    assert "Shop-R1, most probable action" in rows and "oracle, greedy" in rows
    assert "oracle, most probable action" not in rows


def test_only_rows_by_the_most_probable_action_are_asked_for_probabilities() -> None:
    assert CONFIG.evaluation_config.likelihood
    without = msgspec.structs.replace(
        CONFIG, evaluation=msgspec.structs.replace(CONFIG.evaluation, most_probable_action=None)
    )
    assert without.evaluation_config == msgspec.structs.replace(CONFIG.evaluation_config, likelihood=False)
    rows, fewer = (
        {label.label: label for _, label, _ in table_rows(config, [], demo_shop=True)} for config in (CONFIG, without)
    )
    assert fewer == {label: spec for label, spec in rows.items() if "decode" not in spec.arguments}


def test_a_number_of_rationales_below_none_is_refused() -> None:
    with pytest.raises(BadConfig, match=r"evaluation\.most_probable_action is -1; it is a number of rationales"):
        msgspec.structs.replace(CONFIG.evaluation, most_probable_action=-1)


def test_without_grpo_there_is_nothing_to_say() -> None:
    assert verdicts([], CONFIG) == []


@pytest.fixture
def demo_store(tmp_path: Path) -> SessionStore:
    return demo_store_at(tmp_path / "demo", 40, seed=3)


def test_policies_are_held_against_the_best_agent_that_is_none(demo_store: SessionStore) -> None:
    records = {
        name: evaluate(make_agent(name, store=demo_store), demo_store, "all")
        for name in ("random", "majority", "copy_match")
    }
    config = msgspec.structs.replace(CONFIG, phases={"sft": CONFIG.phases["sft"]})
    records |= {"SFT, T 0.6": records["majority"], "SFT, greedy": records["copy_match"]}
    records["SFT, most probable action"] = records["random"]
    rows = [summarise(found, label=label) for label, found in records.items()]
    sampled, greedy, by_action = over_best_agent(records, rows[:3], config)
    assert [one.second for one in (sampled, greedy, by_action)] == ["copy_match"] * 3
    exact = {row.label: row.figures["exact_accuracy"].value for row in rows}
    assert sampled.difference == pytest.approx(exact["majority"] - exact["copy_match"]) and sampled.difference < 0
    assert greedy.difference == 0 and not greedy.significant
    assert over_best_agent(records, [], config) == []
