"""`mixture`: its pool by hand, its weights on planted data, and whose steps they are chosen on."""

import numpy as np
import pytest
from scipy.special import softmax

from agents.adapted import Floats
from agents.conformance import check_agent
from agents.mixture import MixtureAgent, Pool, Weighed, choose_pool, unite
from agents.registry import format_spec, make_agent, parse_spec
from benchmarks.leaderboard.ranking import rank
from replay_sessions.foundation.errors import BadConfig, PromptTooLong, ShopR1Error
from replay_sessions.schema import Action, Click, Terminate
from replay_sessions.store import SessionStore
from shop_env.metrics.likelihood import action_key
from shop_env.observation import observe_session
from shop_env.train_view import TrainView
from tests.agents.conftest import planted_store as planted_store
from tests.demo_stores import demo_store_at
from tests.scored_steps import scored_steps

CART, HOME = Click(name="cart"), Click(name="home")


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SessionStore:
    """Sixty sessions of 15 users."""
    return demo_store_at(tmp_path_factory.mktemp("stores") / "demo", 60, seed=4)


@pytest.fixture(scope="module")
def mixture(store) -> MixtureAgent:
    return mixture_of("page_counts+ngram", store)


def mixture_of(agents: str, store: SessionStore) -> MixtureAgent:
    agent = make_agent(f"mixture?agents={agents}", store=store)
    assert isinstance(agent, MixtureAgent)
    return agent


def test_the_pool_is_the_normalized_product_of_powers():
    probabilities = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    products = np.array([0.5 * 0.2**2, 0.5 * 0.3**2, 0.01 * 0.5**2])
    shares = Pool(np.array([1.0, 2.0]), 0.01, np.nan).shares(probabilities)
    assert shares == pytest.approx(products / products.sum())


def test_every_action_that_an_agent_names_counts_and_clicks_of_different_kinds_are_one_action():
    first: dict[Action, float] = {CART: 0.7, Click(name="cart", click_type="nav_bar"): 0.1, HOME: 0.2}
    united = unite([first, {Terminate(): 0.4, CART: 0.6}])
    assert isinstance(united, tuple)
    assert united[0] == [CART, HOME, Terminate()]
    assert united[1] == pytest.approx(np.array([[0.8, 0.2, 0.0], [0.6, 0.0, 0.4]]))


def test_the_failure_of_an_agent_stands_in_place_of_its_page():
    failure = ValueError("no page")
    assert unite([{CART: 1.0}, failure]) is failure
    assert "gives no probabilities" in str(unite([{CART: 1.0}, None]))


def test_a_too_long_prompt_leaves_the_page_to_other_agents():
    too_long = PromptTooLong("5,000 tokens")
    united = unite([too_long, {CART: 0.9, HOME: 0.1}])
    assert isinstance(united, tuple)
    pool = Pool(np.array([0.3, 1.0]), 1e-6, np.nan)
    assert pool.shares(united[1]) == pytest.approx([0.9, 0.1])
    assert unite([too_long, too_long]) is too_long
    failure = ValueError("no page")
    assert unite([too_long, {CART: 1.0}, failure]) is failure


def planted(scores: Floats, draw: np.random.Generator, *agents: Floats) -> list[Weighed]:
    """Draws actions with probabilities softmax(scores), (steps, actions); the agents' are softmax of theirs."""
    taken = [draw.choice(len(row), p=softmax(row)) for row in scores]
    return [(softmax(np.array(rows), axis=1), int(action)) for *rows, action in zip(*agents, taken, strict=True)]


def nll(weighed: list[Weighed], weights: list[float]) -> float:
    pool = Pool(np.array(weights), 1e-6, np.nan)
    return -float(np.mean([np.log(pool.shares(table)[taken]) for table, taken in weighed]))


def test_weights_minimize_the_nll_of_two_agents():
    draw = np.random.default_rng(0)
    first, second = draw.normal(size=(2, 2000, 5))
    weighed = planted(first + second, draw, first, second)
    pool = choose_pool(weighed, 2)
    assert pool.weights == pytest.approx([1, 1], abs=0.15)
    assert pool.nll == pytest.approx(nll(weighed, [*pool.weights]))
    assert pool.nll < min(nll(weighed, [1, 0]), nll(weighed, [0, 1])) - 0.1
    others = [[*(pool.weights + step)] for step in np.array([[0.05, 0], [-0.05, 0], [0, 0.05], [0, -0.05]])]
    assert pool.nll < min(nll(weighed, other) for other in others)


def test_an_agent_that_is_too_unsure_gets_a_weight_above_1_and_one_that_errs_gets_0():
    draw = np.random.default_rng(0)
    first, second = draw.normal(size=(2, 2000, 4))
    unsure, wrong = choose_pool(planted(first + second, draw, first / 2, -second), 2).weights
    assert unsure > 1.4
    assert wrong == 0


def test_the_floor_is_high_where_agents_often_fail_to_name_the_action():
    named, unnamed = np.array([[0.9, 0.1]]), np.array([[1.0, 0.0]])  # the second action is logged once in ten times
    logged = [0] * 9 + [1]
    assert choose_pool([(table, taken) for table in (named, unnamed) for taken in logged], 1).floor == 0.01
    assert choose_pool([(named, taken) for taken in logged], 1).floor == 1e-6


def test_without_steps_weights_are_equal(planted_store):
    assert choose_pool([], 4).weights.tolist() == [0.25] * 4
    few = mixture_of("page_counts+step_number", planted_store)  # one train user
    assert few.pool.weights.tolist() == [0.5, 0.5]
    assert "page_counts 0.50, step_number 0.50, floor 1e-06, equal for want of steps: 0 of 0" in few.remarks()[0]


def test_weights_are_chosen_on_held_out_users(store, mixture):
    fitting, held_out = TrainView(store).divided()
    agents = [make_agent(name, store=fitting) for name in ("page_counts", "ngram")]
    weighed = []
    for session, indices in held_out.learnt():
        for index in indices:
            observation = observe_session(session)[index]
            united = unite([agent.probabilities([observation])[0] for agent in agents])
            assert isinstance(united, tuple)
            keys, logged = [*map(action_key, united[0])], action_key(session.steps[index].action)
            if logged in keys:
                weighed.append((united[1], keys.index(logged)))
    expected = choose_pool(weighed, 2)
    assert mixture.pool.weights == pytest.approx(expected.weights) and mixture.pool.nll == pytest.approx(expected.nll)
    assert "steps of held-out users of the train split" in mixture.remarks()[0]


def test_a_mixture_pools_agents_that_learnt_from_all_train_users(store, mixture):
    (step,) = list(scored_steps(store, "test", sessions=1))[:1]
    alone = [make_agent(name, store=store).probabilities([step.observation])[0] for name in ("page_counts", "ngram")]
    united = unite(alone)
    assert isinstance(united, tuple)
    (shares,) = mixture.probabilities([step.observation]) or []
    assert shares == pytest.approx(dict(zip(united[0], mixture.pool.shares(united[1]), strict=True)))
    assert sum(shares.values()) == pytest.approx(1)


def test_a_mixture_keeps_the_contract(mixture):
    report = check_agent(mixture, sessions=1)
    assert report.passed, str(report)


def test_with_a_checkpoint_weights_are_chosen_on_the_validation_split(store, planted_store):
    agent = mixture_of("demo_sft?rationales=0+page_counts&sessions=2", store)
    assert "of the validation split, which this row should not be ranked on" in agent.remarks()[0]
    assert agent.reads_whole_sessions
    observation = next(scored_steps(store, "test", sessions=1)).observation
    reply, again = (agent.act_batch([observation], seeds=[seed])[0] for seed in (1, 2))
    assert reply == again and isinstance(reply, str)
    with pytest.raises(BadConfig, match=r"that of store '.*' has no session"):
        mixture_of("demo_sft+page_counts", planted_store)


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ("majority+page_counts", "cannot hold 'majority'"),
        ("page_counts+tests/agents/test_mixture.py:Bot", "cannot hold 'tests/"),
        ("page_counts+mixture?agents=ngram", "cannot hold 'mixture"),
        ("page_count", "Did you mean 'page_counts'"),
        ("", "needs agents, as in mixture"),
    ],
)
def test_unusable_agents_of_a_mixture_are_named(store, agents, message):
    with pytest.raises(ShopR1Error, match=message):
        mixture_of(agents, store)


def test_a_spec_with_arguments_of_its_agents_survives_the_table():
    text = "mixture?agents=pointer?seed=1+runs/a/sft?decode=tokens%26rationales=8&sessions=5"
    spec = parse_spec(text)
    assert spec.arguments == {"agents": "pointer?seed=1+runs/a/sft?decode=tokens&rationales=8", "sessions": 5}
    assert format_spec(spec) == text


def test_rank_has_the_same_weights_as_a_remark_and_identifies_the_row_by_the_code_of_its_agents(
    store, mixture, tmp_path
):
    log = rank(
        agents=["page_counts,mixture?agents=page_counts+ngram"],
        store=str(store.path),
        sessions=3,
        likelihood=True,
        out=str(tmp_path / "board"),
    )
    row = log.entry("mixture?agents=page_counts+ngram")
    assert row.remarks[0] == mixture.remarks()[0] and "nll" in row.row.figures
    assert [name for name, _ in row.identity["resolved"]["agents"]] == ["page_counts", "ngram"]
