"""What an agent knows beyond a prior, whether it is calibrated, whether it knows the person: by hand and as planted."""

import math
from functools import cache

import msgspec
import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import average_precision_score

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit, reply_action
from shop_env.metrics import StepRecord, paired_test
from shop_env.metrics.action_likelihood import persona_picks, session_log_likelihoods
from shop_env.metrics.skill import (
    TypeRankPrior,
    average_precision,
    bits_saved,
    calibration_of,
    product_hits,
    product_of,
    sharpness,
    will_buy,
)
from tests.shop_env.planted_people import AGENTS, HABITS, People

PAGE: list[Action] = [Terminate(), Click(name="a"), Click(name="b"), TypeAndSubmit(name="q", text="kettle")]
OTHER = TypeAndSubmit(name="q", text="pan")


def test_the_prior_by_hand() -> None:
    prior = TypeRankPrior([(PAGE, Click(name="a")), (PAGE, Click(name="a")), (PAGE, Click(name="b")), (PAGE, OTHER)])
    # Types: 1 + 3 clicks, 1 + 1 typed, 1 leaving, of 7; first click 2 + 1, second 1 + 1, of 5.
    assert prior.probabilities(PAGE) == pytest.approx([1 / 7, 4 / 7 * 3 / 5, 4 / 7 * 2 / 5, 2 / 7])
    assert prior.probability(PAGE, Click(name="b")) == pytest.approx(8 / 35)
    assert prior.probability(PAGE, OTHER) == 0
    # Three clicks and no input: 4 of 5 for clicks; places 3, 2 and 1, of 6.
    three = [Terminate(), Click(name="x"), Click(name="y"), Click(name="z")]
    assert prior.probabilities(three) == pytest.approx([1 / 5, 4 / 5 * 3 / 6, 4 / 5 * 2 / 6, 4 / 5 * 1 / 6])


def test_bits_saved_are_bounded_by_the_floor() -> None:
    assert bits_saved([0.0], [1.0]) == pytest.approx(-math.log2(1e6))
    assert bits_saved([0.5, 0.5], [0.5, 0.5]) == 0
    assert math.isnan(bits_saved([], []))


def forecasts(seed: int, steps: int = 4000, power: float = 1.0) -> tuple[list[np.ndarray], list[int]]:
    """Distributions over five actions from which the action is drawn, as an agent that sharpens them sees them."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.ones(5), size=steps)
    taken = [int(rng.choice(5, p=own)) for own in true]
    return [own**power / (own**power).sum() for own in true], taken


@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_the_brier_score_is_the_sum_of_its_parts_and_the_curve_is_scikit_learns(power: float) -> None:
    given, taken = forecasts(1, 500, power)
    edges = np.linspace(0, 1, 11).tolist()
    found = calibration_of(given, taken, edges)
    assert found is not None
    flat, true = np.concatenate(given), np.concatenate([np.arange(5) == at for at in taken])
    assert found.brier == pytest.approx(5 * np.mean((flat - true) ** 2))
    parts = found.reliability - found.resolution + found.uncertainty + found.within
    assert parts == pytest.approx(found.brier)
    assert found.uncertainty == pytest.approx(5 * 0.2 * 0.8)
    came_true, probability = calibration_curve(true, flat, n_bins=10)
    assert [one.came_true for one in found.bins] == pytest.approx(came_true.tolist())
    assert [one.probability for one in found.bins] == pytest.approx(probability.tolist())
    sizes = [one.forecasts for one in found.bins]
    assert found.error == pytest.approx(5 * np.average(np.abs(came_true - probability), weights=sizes))


def test_calibration_by_hand() -> None:
    # Two steps of two actions, 0.75 and 0.25; once the likelier one is taken and once the other.
    found = calibration_of([np.array([0.75, 0.25])] * 2, [0, 1], [0, 0.5, 1])
    assert found is not None
    assert (found.error, found.reliability, found.resolution, found.uncertainty) == (0.5, 0.125, 0, 0.5)
    assert found.brier == 0.625
    assert calibration_of([], []) is None
    none_of_them = calibration_of([np.array([1.0])], [None])
    assert none_of_them is not None and none_of_them.error == 1


def test_an_over_sharp_and_an_over_flat_agent_are_told_from_a_calibrated_one() -> None:
    found = {power: (*forecasts(2, power=power),) for power in (0.5, 1.0, 3.0)}
    errors = {power: calibration_of(*given) for power, given in found.items()}
    assert errors[1.0] is not None and errors[1.0].error < 0.08
    assert errors[3.0] is not None and errors[3.0].error > 0.3
    assert errors[0.5] is not None and errors[0.5].error > 0.2
    sharp = {
        power: sharpness(given, [own[at] for own, at in zip(given, taken, strict=True)])
        for power, (given, taken) in found.items()
    }
    assert sharp[3.0] < 0.5
    assert sharp[1.0] == pytest.approx(1, abs=0.03)
    assert sharp[0.5] > 1.03


@cache
def likelihoods(agent: str, seed: int, other: int = 0) -> tuple[list[StepRecord], list[np.ndarray], list[int]]:
    """Records with the agent's likelihoods, as the user so many further on; its distributions, and what was logged."""
    people = People(seed, users=40, visits=6, alike=4.0)
    names = [reply_action(habit) for habit in HABITS]
    records, given, taken = [], [], []
    for record in people.answers("anew"):
        if record.logged["type"] == "terminate":
            continue
        user = (int(record.user_id[1:]) + other) % 40
        held, at = people.habits_of(agent, user), names.index(record.logged)
        records.append(msgspec.structs.replace(record, logged_probability=float(held[at])))
        given.append(held)
        taken.append(at)
    return records, given, taken


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("agent", AGENTS)
def test_agents_that_are_surer_than_right_are_found_by_sharpness_and_calibration(agent: str, seed: int) -> None:
    """The over-sharp one, and the one that is sure of another person's habits; entropy_ratio tells them apart."""
    records, given, taken = likelihoods(agent, seed)
    calibrated = calibration_of(given, taken)
    assert calibrated is not None
    found = sharpness(given, [record.logged_probability or 0 for record in records])
    assert (found < 0.8) == (calibrated.error > 0.2) == (agent in ("sharp", "copied"))


@pytest.mark.parametrize("seed", range(3))
def test_a_person_is_recognised_by_an_agent_that_knows_persons_and_by_no_other(seed: int) -> None:
    def picked(agent: str) -> float:
        found = persona_picks(likelihoods(agent, seed)[0], [likelihoods(agent, seed, other)[0] for other in (5, 9, 14)])
        assert found is not None
        assert (found.chance, found.sessions, found.users) == (1 / 4, 240, 40)
        if agent != "collapsed":  # of whom all users have the same rate
            assert found.low is not None and found.high is not None and found.low <= found.rate <= found.high
        return found.rate

    assert picked("anew") > 0.5
    assert picked("collapsed") == pytest.approx(1 / 4)  # all equally likely
    assert picked("copied") < 0.4


def test_what_the_persona_is_worth_is_a_paired_difference() -> None:
    worth = {
        agent: paired_test(likelihoods(agent, 0, 7)[0], likelihoods(agent, 0)[0], "nll")
        for agent in ("anew", "collapsed")
    }
    assert worth["anew"] is not None and worth["anew"].low is not None and worth["anew"].low > 0  # shuffled costs more
    assert worth["collapsed"] is not None and worth["collapsed"].difference == 0


def test_persona_picks_by_hand() -> None:
    def run(*probabilities: float | None) -> list[StepRecord]:
        return [
            StepRecord(
                session_id=f"s{place // 2}",
                user_id="ada",
                step_index=place,
                step_count=2,
                logged={"type": "terminate"},
                logged_probability=probability,
            )
            for place, probability in enumerate(probabilities)
        ]

    own, other = run(0.5, 0.2, 0.3, 0.3), run(0.4, 0.2, 0.3, 0.3)
    assert session_log_likelihoods(own) == pytest.approx({"s0": math.log(0.1), "s1": math.log(0.09)})
    found = persona_picks(own, [other])
    assert found is not None
    assert (found.rate, found.low) == (0.75, None)  # the first session is its own, the second as likely as either
    assert persona_picks(run(None, None), [run(0.1, 0.2)]) is None
    with pytest.raises(BadConfig, match="at least one run"):
        persona_picks(own, [])
    with pytest.raises(BadConfig, match="not evaluated on the same steps"):
        persona_picks(own, [other[:2]])


def test_products_are_known_by_asin_or_by_the_name_before_the_link() -> None:
    assert product_of("search_results.B0C5XYZ123.view_product") == "B0C5XYZ123"
    assert product_of("results.steel_kettle_b0c5xyz123.view_product") == "B0C5XYZ123"
    assert product_of("results.Red_Kettle.product_title") == "red_kettle"
    assert product_of("results.red_kettle.product_image") == "red_kettle"
    assert product_of("product.buy_now") is None
    assert product_of("view_product") is None


def test_hits_add_up_the_links_of_a_product() -> None:
    held = {"r.cup.view_product": 0.3, "r.pan.view_product": 0.2, "r.pan.product_image": 0.2, "nav_bar.home": 0.3}
    clicks = ["r.pan.product_image", "r.cup.view_product", "nav_bar.home", "r.pot.view_product"]
    assert product_hits([held] * 4, clicks, 1) == pytest.approx(1 / 3)
    assert product_hits([held] * 4, clicks, 2) == pytest.approx(2 / 3)
    assert product_hits([held], ["nav_bar.home"], 1) is None


def test_naming_no_product_hits_none() -> None:
    assert product_hits([{}, {"nav_bar.home": 1.0}], ["r.cup.view_product"] * 2, 5) == 0


@pytest.mark.parametrize("seed", range(3))
def test_average_precision_is_scikit_learns_with_equal_scores_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, labels = rng.integers(6, size=60) / 5, rng.random(60) < 0.3
    assert average_precision(scores, labels) == pytest.approx(average_precision_score(labels, scores))


def test_who_will_buy_is_asked_before_it_is_seen() -> None:
    scores = [[0.1, 0.2, 0.9], [0.3, 0.1], [0.2, 0.6, 0.7, 1.0]]
    # After one step all three go on: 0.1, 0.3 and 0.2, of which the first and last buy; after two the second has ended.
    assert will_buy(scores, [True, False, True]) == [pytest.approx(1 / 2 * (1 / 2 + 2 / 3)), None, None]
    assert will_buy([], []) == []
