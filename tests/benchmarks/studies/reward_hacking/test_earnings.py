"""What policies earn: by hand on a few steps, and planted rewards that pay spam or do not."""

from collections.abc import Mapping

import numpy as np
import pytest

from benchmarks.studies.reward_hacking.disagreements import Gap, find_disagreements, verdict
from benchmarks.studies.reward_hacking.earnings import Answers, compute_by_type, compute_earned, rescore
from benchmarks.studies.reward_hacking.guesses import Mix, count_mix, measure_guesses
from replay_sessions.schema import Click, Session, Step, Terminate, TypeAndSubmit
from shop_env.evaluation.scored_steps import ScoredStep
from shop_env.metrics import paired_difference, record_step
from shop_env.observation import History
from shop_env.replies import format_reply, parse_reply
from shop_env.reward import REWARD_PRESETS, RewardConfig

STEPS = [
    Click(name="home"),  # the first of a session is given
    Click(name="cart"),
    Click(name="results.red_kettle.view"),
    TypeAndSubmit(name="search", text="red kettle"),
    Terminate(),
]


def answered(reply_of: Mapping[int, object], label: str = "planted") -> Answers:
    """Replies to a session of STEPS, from its second step on."""
    steps = tuple(Step(page=f'<a name="{number}">x</a>', action=action) for number, action in enumerate(STEPS))
    session = Session(session_id="one", user_id="somebody", steps=steps, source="test")
    replies = [format_reply("so", reply_of[number]) for number in range(1, len(STEPS))]  # type: ignore[arg-type]
    records = [
        record_step(session, number, reply, REWARD_PRESETS["shop_r1"])
        for number, reply in zip(range(1, len(STEPS)), replies, strict=True)
    ]
    return Answers(label, True, records, [parse_reply(reply) for reply in replies], STEPS[1:])


def test_always_leaving_earns_what_table_1_says() -> None:
    """Format 0.5 at four steps, type 0.3 at one; the log: 0.5 and 0.3 at all, names, texts and similarities besides."""
    spam = answered(dict.fromkeys(range(1, 5), Terminate()))
    found = compute_earned(spam, REWARD_PRESETS)
    assert found.paid["shop_r1"].reward.value == pytest.approx((4 * 0.5 + 0.3) / 4)
    assert found.paid["shop_r1"].terms == pytest.approx({"format": 0.5, "action_type": 0.075})
    best = (2 * 1001.0 + (0.5 + 0.3 + 0.2 + 0.1 + 1000) + 0.8) / 4
    assert found.paid["shop_r1"].of_best == pytest.approx((2.3 / 4) / best)
    assert found.paid["no_format"].reward.value == pytest.approx(0.3 / 4)
    assert found.paid["no_dars"].of_best == pytest.approx(2.3 / (2 * 2.0 + 2.1 + 0.8))
    assert found.paid["binary"].of_best == pytest.approx(0.25)
    assert found.paid["customer_r1"].reward.value == pytest.approx((4 * 1 + 1) / 4)
    assert found.worth["exact_accuracy"].value == found.worth["type_accuracy"].value == 0.25
    assert found.worth["type_f1_macro"].value == pytest.approx(2 * 1 / (2 * 1 + 3) / 3)


def test_a_reward_at_any_scale_and_mix_follows_from_the_means_by_type() -> None:
    near = Click(name="results.blue_kettle.view")  # 3 of 4 words: 0.75
    mixed = answered({1: Click(name="cart"), 2: near, 3: TypeAndSubmit(name="search", text="kettle"), 4: Terminate()})
    table = compute_by_type(mixed, RewardConfig(threshold=0.75))
    assert table.base == pytest.approx((1.0, 1.1, 0.8))
    assert table.similarity == pytest.approx(((1 + 0.75) / 2, 0.0, 0.0))  # "kettle" for "red kettle" is 2/3
    assert table.exact == pytest.approx((0.5, 0.0, 1.0))
    own = count_mix(STEPS[1:], "own")
    assert own == Mix("own", 2, 1, 1)
    for dars in (1.0, 10.0, 1000.0):
        records, _ = rescore(mixed, RewardConfig(dars=dars))
        assert table.reward(dars, own) == pytest.approx(np.mean([record.reward for record in records]))
    half = Mix("half", 1, 0, 1)
    assert table.reward(10.0, half) == pytest.approx(0.5 * (1.0 + 10 * 0.875) + 0.5 * 0.8)
    assert table.worth(half) == pytest.approx(0.75)
    assert table.of_best(10.0, half) == pytest.approx((0.5 * 9.75 + 0.5 * 0.8) / (0.5 * 11.0 + 0.5 * 0.8))


def test_means_by_type_agree_with_all_records_of_a_store(answers: dict[str, Answers]) -> None:
    for one in (answers["copy_match"], answers["invented_name"]):
        own = count_mix(one.logged, "own")
        assert own.steps == len(one.records)
        for reward in (REWARD_PRESETS["shop_r1"], REWARD_PRESETS["no_dars"]):
            records, _ = rescore(one, reward)
            expected = np.mean([record.reward for record in records])
            assert compute_by_type(one, reward).reward(reward.dars, own) == pytest.approx(expected)


def test_a_reward_that_pays_spam_is_found_and_one_that_does_not_is_not(answers: dict[str, Answers]) -> None:
    """1000 points for leaving where the shopper left and nothing for clicks, beside exact matches of any kind."""
    pays_spam = RewardConfig(kind="customer_r1", format=0.0, typing_points=0.0, click_points=0.0, wrong_click=-1.0,
                             click_type_points={}, terminate_points=1000.0)  # fmt: skip
    told = find_disagreements(
        [answers["always_terminate"], answers["copy_match"]],
        {"pays_spam": pays_spam, "binary": REWARD_PRESETS["binary"]},
    )
    found = {(one.reward, one.worth): one for one in told}
    worst = found["pays_spam", "exact_accuracy"]
    assert worst.pairs == {"opposite": 1}
    assert (worst.opposite[0].paid_more, worst.opposite[0].worth_more) == ("always_terminate", "copy_match")
    reward, worth = worst.opposite[0].reward, worst.opposite[0].worth
    assert reward.low is not None and worth.high is not None and reward.low > 0 > worth.high
    assert found["binary", "exact_accuracy"].pairs == {"agrees": 1}
    assert found["binary", "exact_accuracy"].opposite == []


def test_differences_are_those_of_the_paired_test(answers: dict[str, Answers]) -> None:
    spam, copy = answers["always_terminate"], answers["copy_match"]
    (told, _) = find_disagreements([copy, spam], {"no_dars": REWARD_PRESETS["no_dars"]})
    assert told.pairs == {"agrees": 1}
    (other, _) = find_disagreements([spam, answers["every_name"]], {"shop_r1": REWARD_PRESETS["shop_r1"]})
    (pair,) = other.opposite
    a, b = (rescore(answers[name], REWARD_PRESETS["shop_r1"])[0] for name in (pair.paid_more, pair.worth_more))
    expected = paired_difference(a, b, "mean_reward")
    assert (pair.reward.difference, pair.reward.low, pair.reward.high) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )


def test_policies_that_answer_alike_are_one(answers: dict[str, Answers]) -> None:
    alike = [answers[name] for name in ("always_terminate", "empty_rationale", "certain_rationale", "first_element")]
    told = find_disagreements(alike, {"binary": REWARD_PRESETS["binary"]})
    assert [sum(one.pairs.values()) for one in told] == [1, 1]


@pytest.mark.parametrize(
    ("paid", "worth", "said"),
    [
        ((1, 2), (1, 2), "agrees"),
        ((1, 2), (-2, -1), "opposite"),
        ((1, 2), (-1, 1), "unfounded"),
        ((-1, 1), (1, 2), "blind"),
        ((-1, 1), (0, 0), "silent"),
    ],
)
def test_a_verdict_needs_both_differences_to_be_significant(
    paid: tuple[float, float], worth: tuple[float, float], said: str
) -> None:
    gaps = [Gap(sum(ends) / 2, *ends, 0.01 if ends[0] * ends[1] > 0 else 0.5) for ends in (paid, worth)]
    assert verdict(*gaps) == said


def test_guesses_are_measured_on_the_pages_of_the_store() -> None:
    """Of the other three clickable names two have 3 of the logged one's 4 words; the words that three share are 3."""
    names = ("cart", *(f"results.{colour}_kettle.view" for colour in ("red", "blue", "green")))
    page = "".join(f'<a name="{name}">x</a>' for name in names)
    session = Session(
        session_id="one",
        user_id="somebody",
        steps=(Step(page=page, action=Click(name="results.red_kettle.view")),),
        source="test",
    )
    step = ScoredStep(session, 0, {"page": page, "history": History(), "persona": "", "goal": "", "step": 0})
    found = measure_guesses([step])
    wrong = found["wrong_click"].at(0.75)
    assert (wrong.right, wrong.near, wrong.similarity) == pytest.approx((0.0, 2 / 3, 0.75))
    assert found["wrong_click"].at(0.9).near == 0.0
    assert found["first"].at(0.0).right == 0.0
    invented = found["invented"].at(0.75)
    assert (invented.right, invented.near, invented.similarity) == pytest.approx((0.0, 1.0, 6 / 7))
