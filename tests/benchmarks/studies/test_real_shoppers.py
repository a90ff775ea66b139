"""Effects and sessions of known shoppers: what was planted is found, and what was not is not."""

import csv
import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from agents.adapted import DistributionAgent, Floats
from agents.registry import make_agent
from benchmarks.studies.real_shoppers import effects, sim_to_real
from benchmarks.studies.real_shoppers.effects import error_of, fit_logit
from benchmarks.studies.real_shoppers.logged_shop import MOST_REPLIES, LinkGraph, simulate, walk
from benchmarks.studies.real_shoppers.shoppers import REFERENCES, Popularity, page_kind
from benchmarks.studies.real_shoppers.sim_to_real import area, examples
from replay_sessions.__main__ import main
from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.schema import Action, Click, Session, Step, Terminate
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import SplitPlan
from shop_env.evaluation.evaluate import LazyAgent
from shop_env.metrics.statistics import t_interval
from shop_env.observation import Observation
from shop_env.replies import format_reply
from shop_env.words import past_actions

WEIGHTS = np.array([0.8, -0.5])


def choices(number: int, seed: int) -> tuple[csr_matrix, np.ndarray, np.ndarray, np.ndarray]:
    """Facts of five offers a choice, where choices start, the true shares, and what was drawn from them."""
    draw = np.random.default_rng(seed)
    facts = draw.normal(size=(number, 5, 2))
    powers = np.exp(facts @ WEIGHTS)
    shares = powers / powers.sum(axis=1, keepdims=True)
    drawn = np.array([draw.multinomial(1, own) for own in shares])
    return csr_matrix(facts.reshape(-1, 2)), np.arange(0, 5 * number, 5), shares.ravel(), drawn.ravel().astype(float)


@pytest.mark.long
def test_a_planted_effect_is_found_with_an_interval_that_holds_it_in_19_of_20_samples() -> None:
    held, errors, found = 0, [], []
    for seed in range(60):
        facts, starts, _, drawn = choices(200, seed)
        weights, influences = fit_logit(facts, starts, drawn)
        error = error_of(influences[:, 0], np.arange(200))
        assert error is not None
        low, high = t_interval(weights[0], error)
        held += low <= WEIGHTS[0] <= high
        errors.append(error.standard_error)
        found.append(weights[0])
    assert 53 <= held <= 60
    assert np.mean(errors) == pytest.approx(np.std(found), rel=0.25)


def test_an_agent_with_the_true_probabilities_has_the_true_effect_and_differs_by_chance_alone() -> None:
    facts, starts, shares, drawn = choices(500, 1)
    (agent, of_agent), (people, of_people) = (fit_logit(facts, starts, own) for own in (shares, drawn))
    assert agent == pytest.approx(WEIGHTS, abs=1e-4)
    error = error_of((of_agent - of_people)[:, 0], np.arange(500))
    assert error is not None
    assert abs(agent[0] - people[0]) < 2.5 * error.standard_error


def test_errors_of_an_area_are_those_of_delong() -> None:
    draw = np.random.default_rng(0)
    labels = draw.integers(2, size=300)
    held = np.round(draw.normal(size=300) + labels, 1)  # with ties
    score = area(held, labels)
    above = (held[labels == 1][:, None] > held[labels == 0]) + (held[labels == 1][:, None] == held[labels == 0]) / 2
    assert score.value == pytest.approx(above.mean())
    variance = sum(side.var(ddof=1) / len(side) for side in (above.mean(axis=0), above.mean(axis=1)))
    error = error_of(score.influences, np.arange(300))
    assert error is not None
    assert error.standard_error**2 == pytest.approx(variance, rel=0.02)


PRICES = (20, 50, 30, 60, 20, 40)
HEADER = (
    "year;month;day;order(sells);country;session ID;page 1 (main category);page 2 (clothing model);colour;location;"
    "model photography;price;price 2;page"
)


@pytest.mark.long
def test_the_effect_of_a_place_is_measured_on_june_s_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shoppers click on the bottom row three times as often, and price is nothing to them."""
    draw, clicks = Random(0), tmp_path / "clicks.csv.gz"
    with gzip.open(clicks, "wt") as file:
        table = csv.writer(file, delimiter=";")
        table.writerow(HEADER.split(";"))
        for session in range(240):
            for order, place in enumerate(draw.choices(range(6), (1, 1, 1, 3, 3, 3), k=4), start=1):
                price = PRICES[place]
                about = (2008, 4 + 2 * (session % 2), 1, order, 29, session)
                table.writerow((*about, 1, f"A{place}", 1, place + 1, 1, price, 1 + (price < 35), 1))
    store = ["--split-by", "date", "--test-from", "2008-06-01", "--validation", "0", "--out", str(tmp_path / "shop")]
    assert main(["import", "events", str(clicks), "--mapping", "clothing_shop", *store]) == 0
    words = ["--store", str(tmp_path / "shop"), "--clicks", str(clicks), "--out", str(tmp_path / "out")]
    words += ["--agents", *REFERENCES]
    assert effects.main(words) == 0
    record = json.loads((tmp_path / "out" / "effects.json").read_text())
    assert (record["products"], record["products_that_change"], record["clicks"]) == (6, 0, {"test": 360, "train": 360})
    facts = [fact for of_model in record["facts"].values() for fact in of_model]
    place, price, again = (facts.index(name) for name in ("bottom row", "price, per $10", "looked at before"))
    people, popularity, uniform = (record["predicted"][name] for name in ("people in June", "popularity", "uniform"))
    assert 0 < people[place]["low"] < math.log(3) < people[place]["high"]
    assert people[price]["low"] < 0 < people[price]["high"]
    assert popularity[place]["value"] == pytest.approx(math.log(3), abs=0.5)
    for name in ("people before", "popularity"):
        assert record["differences"][name][place]["low"] < 0 < record["differences"][name][place]["high"]
    assert record["differences"]["uniform"][place]["high"] < 0
    values = [uniform[place]["value"], uniform[again]["value"], popularity[again]["value"]]
    assert values == pytest.approx([0, 0, 0], abs=1e-4)
    assert effects.main(words) == 0  # nothing is asked again
    assert record["predicted"] == json.loads((tmp_path / "out" / "effects.json").read_text())["predicted"]
    capsys.readouterr()


NAMES = [f"results.p{number}.view_product" for number in range(4)]
LIST = "".join(f'<a name="{name}">p</a>' for name in NAMES)
BACK = Click(name="menu.list")


def product_page(number: int) -> str:
    return f'<a name="menu.list">list</a><h1>{number}</h1><button name="product.add">add</button>'


class Truth(DistributionAgent):
    """Goes from product n to n + 1 most often, and leaves the fourth with nine times the chance of others."""

    def __init__(self) -> None:
        super().__init__(1.0)

    def distributions(self, observations: Sequence[Observation]) -> list[tuple[Sequence[Action], Floats]]:
        return [self._of(observation) for observation in observations]

    def _of(self, observation: Observation) -> tuple[list[Action], Floats]:
        past = [action["name"] for action in past_actions(observation["history"])]
        seen = [NAMES.index(name) for name in past if name in NAMES]
        if observation["page"] == LIST:
            weights = [0.7 if seen and number == (seen[-1] + 1) % 4 else 0.1 for number in range(4)]
            return [Click(name=name) for name in NAMES], np.array(weights) / sum(weights)
        leaving = 0.72 if seen[-1] == 3 else 0.08
        return [Terminate(), BACK], np.array([leaving, 1 - leaving])


def walk_of(*numbers: int) -> Session:
    steps = [
        step
        for number in numbers
        for step in (Step(page=LIST, action=Click(name=NAMES[number])), Step(page=product_page(number), action=BACK))
    ]
    ended = (*steps[:-1], Step(page=steps[-1].page, action=Terminate()))
    return Session(session_id=f"walk {numbers}", user_id=f"walk {numbers}", steps=ended, source="test")


GRAPH = LinkGraph([walk_of(0, 1), walk_of(2, 3), walk_of(3, 2, 1, 0)])


def played(graph: LinkGraph, *replies: str) -> tuple[list[str], Session | None]:
    """The pages of a visit with these replies, and its session."""
    visit = walk(graph, "v", 0)
    pages = [next(visit)[0]["page"]]
    for reply in replies:
        try:
            pages.append(visit.send(reply)[0]["page"])
        except StopIteration as ended:
            return pages, ended.value
    raise AssertionError("the visit is not over")


def test_actions_lead_where_they_led_in_the_log() -> None:
    actions: list[Action] = [
        Click(name=NAMES[2]),
        Click(name="product.add"),
        BACK,
        Terminate(),
    ]  # nobody did the second one
    pages, session = played(GRAPH, *(format_reply("", action) for action in actions))
    assert pages == [LIST, product_page(2), product_page(2), LIST]
    assert session is not None
    assert [(step.page, step.action) for step in session.steps] == list(zip(pages, actions, strict=True))


def test_what_was_somebody_s_purchase_ends_a_visit() -> None:
    bought = Click(name="checkout.place_order", click_type="purchase")
    steps = (Step(page='<a name="checkout.place_order">buy</a>', action=bought),)
    graph = LinkGraph([Session(session_id="s", user_id="u", steps=steps, source="test")])
    _, session = played(graph, format_reply("", Click(name="checkout.place_order")))
    assert session is not None
    assert session.steps == steps


def test_replies_that_cannot_be_read_do_nothing_and_an_agent_that_fails_stops_the_study() -> None:
    assert played(GRAPH, *["{"] * MOST_REPLIES) == ([LIST] * MOST_REPLIES, None)
    with pytest.raises(AgentFailed, match="down"):
        played(GRAPH, AgentFailed("down"))  # type: ignore[arg-type]


def people_of(folder: Path, sessions: int, seed: int) -> list[Session]:
    return simulate(LazyAgent(Truth), GRAPH, sessions, folder / f"people-{seed}", seed)


def test_a_visit_that_was_simulated_is_not_played_again(tmp_path: Path) -> None:
    assert people_of(tmp_path, 20, 0) == simulate(LazyAgent(pytest.fail), GRAPH, 20, tmp_path / "people-0", 0)


def test_examples_know_nothing_of_what_comes() -> None:
    whole, cut = walk_of(0, 1, 2), walk_of(0, 1)
    kinds = frozenset([page_kind(whole.steps[-1].page)])
    tasks: tuple[sim_to_real.Task, ...] = ("leaving", "product")
    for task in tasks:
        longer, shorter = (list(examples(session, task, kinds)) for session in (whole, cut))
        assert [example.facts for example in longer][: len(shorter)] == [example.facts for example in shorter]
    assert [example.outcome for example in examples(whole, "leaving", kinds)] == [0, 0, 1]
    assert [example.outcome for example in examples(whole, "product", kinds)] == ["p1", "p2"]


@pytest.mark.long
def test_sessions_of_the_true_process_are_worth_people_s_and_those_of_uniform_actions_are_worth_chance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    splits = SplitPlan(by="session", validation=0, test=0.5)
    with StoreWriter(tmp_path / "people", source="test", splits=splits) as writer:
        for session in people_of(tmp_path, 400, 1):
            writer.write(session)
    words = ["--store", str(tmp_path / "people"), "--out", str(tmp_path / "out")]
    words += ["--agents", f"truth={__name__}:Truth", REFERENCES[1]]
    assert sim_to_real.main(words) == 0
    record = json.loads((tmp_path / "out" / "sim_to_real.json").read_text())
    found = {(row["task"], row["measure"], row["source"]): row for row in record["results"]}
    assert found["leaving", "AUC", "people"]["value"]["value"] > 0.8
    assert found["product", "accuracy", "people"]["value"]["value"] == pytest.approx(0.7, abs=0.06)
    for task, measure in (
        ("leaving", "AUC"),
        ("leaving", "log loss"),
        ("product", "accuracy"),
        ("product", "log loss"),
    ):
        difference = found[task, measure, "truth"]["difference"]
        assert measure != "log loss" or difference["low"] < 0 < difference["high"]
        assert abs(difference["value"]) < 0.04
    for source in ("uniform", "people, shuffled"):
        assert found["product", "accuracy", source]["value"]["value"] < 0.45
        assert found["product", "log loss", source]["difference"]["value"] > 0.2
        assert found["leaving", "log loss", source]["difference"]["value"] > 0.1
    capsys.readouterr()


def test_references_weigh_by_what_people_did_on_such_pages(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "store", source="test", splits=SplitPlan(validation=0, test=0)) as writer:
        writer.write(walk_of(0, 0, 1))
    page: Observation = {"page": LIST, "history": (), "persona": "", "goal": "", "step": 0}
    popular, uniform = (make_agent(spec, store=SessionStore.open(writer.path)) for spec in REFERENCES)
    assert isinstance(popular, Popularity)
    assert isinstance(uniform, Popularity)
    (held,) = popular.probabilities([page]) or [{}]
    shares = dict(zip(map(_click, NAMES), (3 / 8, 2 / 8, 1 / 8, 1 / 8), strict=True))
    assert held == pytest.approx({Terminate(): 1 / 8, **shares})
    (alike,) = uniform.probabilities([page]) or [{}]
    assert alike == pytest.approx(dict.fromkeys(held, 1 / 5))


def _click(name: str) -> Action:
    return Click(name=name)
