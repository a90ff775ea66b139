"""The conditional logit: its gradient, what it reads of offers, and that it finds coefficients that were planted."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

from agents.baselines import choice_model
from agents.baselines.choice_model import ChoiceModel, sample_page
from replay_sessions.schema import Action, Click, Persona, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.store import SessionStore
from replay_sessions.store.splits import SplitPlan
from shop_env.choices.facts import FEATURES
from shop_env.observation import Observation, observe_session
from shop_env.replies import parse_reply
from shop_env.train_view import TrainView
from tests.scored_steps import GOAL_SHOWN
from tests.stores import store_at

GOAL = "Find a kettle for at most $100."
PRICE, RATING = -4.0, 1.5  # planted: of a price relative to the budget, and of a star


def card(name: str, price: float, rating: float, currency: str = "${}") -> str:
    offer = f"<span>{currency.format(f'{price:.2f}')}</span><span>{rating} out of 5 stars</span>"
    return f'<div><a name="results.{name}.view">{name}</a>{offer}</div>'


def planted_sessions(count: int) -> Iterator[Session]:
    """Each user chooses one of five kettles by a logit of price and rating; names and places say nothing."""
    random = Random(0)
    for number in range(count):
        offers = [(random.uniform(10, 99), random.choice([3.0, 3.5, 4.0, 4.5, 5.0])) for _ in range(5)]
        names = [f"k{number}x{place}" for place in range(5)]
        weights = [np.exp(PRICE * price / 100 + RATING * rating) for price, rating in offers]
        chosen = random.choices(names, weights)[0]
        page = "".join(card(name, *offer) for name, offer in zip(names, offers, strict=True))
        yield planted_session(number, (Step(page=page, action=Click(name=f"results.{chosen}.view")),))


def planted_session(number: int, steps: tuple[Step, ...], goal: str | None = GOAL) -> Session:
    return Session(
        session_id=f"s{number}",
        user_id=f"u{number}",
        persona=Persona(text="A hasty shopper" if number % 2 else "A patient shopper"),
        goal=goal,
        steps=steps,
        source="planted",
        official_split="train",
    )


def fit_to(path: Path, sessions: Iterable[Session]) -> ChoiceModel:
    store = store_at(path, sessions, splits=SplitPlan(by="official"))
    return ChoiceModel(TrainView(store, GOAL_SHOWN), first_action=True)


@pytest.fixture(scope="module")
def planted(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("planted") / "store"


@pytest.fixture(scope="module")
def model(planted) -> ChoiceModel:
    return fit_to(planted, planted_sessions(600))


def observation(page: str, goal: str = GOAL, persona: str = "A hasty shopper") -> Observation:
    step = Step(page=page, action=Click(name="any"))
    session = Session(
        session_id="s", user_id="u", steps=(step,), source="test", goal=goal, persona=Persona(text=persona)
    )
    return next(iter(observe_session(session, GOAL_SHOWN)))


def shares_on(model: ChoiceModel, page: str, **about: str) -> dict[Action, float]:
    [(actions, shares)] = model.distributions([observation(page, **about)])
    return dict(zip(actions, map(float, shares), strict=True))


def test_gradient_equals_finite_differences(model):
    pages = model.pages([next(iter(observe_session(session, GOAL_SHOWN))) for session in planted_sessions(12)])
    batches = model.batches([(page, number % len(page.choices)) for number, page in enumerate(pages)])
    random = np.random.default_rng(0)
    weights = random.normal(0, 0.1, len(model.weights))
    _, slope = model.objective(weights, batches, 3.0)
    for _ in range(20):
        direction = random.normal(0, 1, len(weights))
        ends = [model.objective(weights + sign * 1e-5 * direction, batches, 3.0)[0] for sign in (1, -1)]
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(slope @ direction, rel=1e-5, abs=1e-7)


def test_planted_price_and_rating_are_recovered(model):
    """One kettle is varied among others: the log-odds move by what was planted."""

    def log_odds(price: float, rating: float) -> float:
        page = card("a", price, rating) + "".join(card(name, 50, 4.0) for name in "bcde")
        shares = shares_on(model, page)
        return float(np.log(shares[Click(name="results.a.view")] / shares[Click(name="results.e.view")]))

    assert log_odds(80, 4.0) - log_odds(20, 4.0) == pytest.approx(0.6 * PRICE, abs=0.5)
    assert log_odds(50, 5.0) - log_odds(50, 3.5) == pytest.approx(1.5 * RATING, abs=0.5)


def test_probabilities_sum_to_1_whatever_is_on_the_page(model):
    pages = [card("a", 20, 4.0), "", "<p>Nothing</p>", '<input name="search"/><a name="help">Help</a>']
    for page in pages:
        assert sum(shares_on(model, page).values()) == pytest.approx(1)
    together = model.distributions([observation(page) for page in pages])
    for page, (actions, shares) in zip(pages, together, strict=True):
        assert dict(zip(actions, shares, strict=True)) == pytest.approx(shares_on(model, page))


def test_unknown_roles_words_and_personas_have_a_probability(model):
    page = '<input name="query"/><button name="chat.open">Chat</button>' + card("a", 20, 4.0, "€{}")
    shares = shares_on(model, page, goal="Ask about a sofa", persona="Someone else entirely")
    assert TypeAndSubmit(name="query", text="sofa") in shares and Click(name="chat.open") in shares
    assert all(0 < share < 1 for share in shares.values())


def test_an_unknown_element_with_a_better_offer_is_likelier(model):
    page = card("a", 90, 3.0).replace("results", "deals") + card("b", 15, 5.0).replace("results", "deals")
    shares = shares_on(model, page)
    assert shares[Click(name="deals.b.view")] > 2 * shares[Click(name="deals.a.view")]


def facts_of(model: ChoiceModel, page: str, name: str, **about: str) -> dict[str, float]:
    [read] = model.pages([observation(page, **about)])
    [facts] = [choice.facts for choice in read.choices if choice.action == Click(name=name)]
    return dict(zip(FEATURES, facts, strict=True))


def test_a_product_page_says_whether_it_fits_the_goal(model):
    page = '<h1>Zelkova Kettle</h1><p>$40</p><button name="product.buy_now">Buy</button>'
    for goal, words, other in [
        ("Find a zelkova kettle for at most $100.", 1, 0),
        ("Find a tent for at most $100.", 0, 1),
    ]:
        facts = facts_of(model, page, "product.buy_now", goal=goal)
        assert (facts["product: wanted words"], facts["product: another kind"]) == (words, other)
        assert (facts["leads to a purchase"], facts["leads back"], facts["price / budget"]) == (1, 0, 0.4)


def test_a_rating_that_no_page_shows_is_neutral(model):
    """Without ratings an offer is as likely as one of the mean rating, and others do not matter."""
    mean = model.neutral[FEATURES.index("rating")]
    rated = card("a", 50, round(mean, 1)) + card("b", 50, 3.0)
    unrated = rated.replace(f"{round(mean, 1)} out of 5 stars", "")
    name = Click(name="results.a.view")
    assert shares_on(model, unrated)[name] == pytest.approx(shares_on(model, rated)[name], abs=0.03)


def test_an_unknown_rating_is_typical_of_all_offers_not_of_opened_ones(tmp_path):
    """Shoppers open what has five stars, so product pages show no other."""
    list_page = "".join(card(name, 50, rating) for name, rating in (("a", 5.0), ("b", 3.0), ("c", 2.5), ("d", 3.5)))
    product = '<h1>Kettle</h1><p>$50</p><p>5.0 out of 5 stars</p><button name="product.buy_now">Buy</button>'
    product += "".join(f'<a name="menu.{number}">{number}</a>' for number in range(8))
    steps = (
        Step(page=list_page, action=Click(name="results.a.view")),
        Step(page=product, action=Click(name="product.buy_now")),
    )
    session = planted_session(0, steps)
    fitted = fit_to(tmp_path / "store", (replace(session, session_id=str(n), user_id=str(n)) for n in range(12)))
    assert fitted.neutral[FEATURES.index("rating")] == pytest.approx(3.5)


def test_a_products_name_is_no_part_of_a_role(tmp_path):
    """Each session shows the same products, so that their names recur as those of buttons do."""
    page = card("red_kettle", 20, 4.0) + card("blue_kettle", 30, 4.0) + '<nav><a name="menu.help.open">Help</a></nav>'
    session = planted_session(0, (Step(page=page, action=Click(name="results.red_kettle.view")),))
    fitted = fit_to(tmp_path / "store", (replace(session, session_id=str(n), user_id=str(n)) for n in range(12)))
    assert {"click results.*.view", "click menu.help.open"} < {*fitted.roles}
    assert not any("kettle" in role for role in fitted.roles)


def test_popular_offers_the_place_of_the_last_click_and_the_headings_link_are_learnt(tmp_path):
    """All offers are alike: shoppers open any, go back by the link of the list that they came from, open the next."""
    names, random = "abcdefgh", Random(0)
    cards = "".join(card(name, 50, 4.0) for name in names)

    def product(heading: str) -> str:
        links = "".join(f'<a name="menu.{name}">{name}</a>' for name in ("tin_kettles", "red_kettles", "pots"))
        return f"<nav>{links}</nav><h1>{heading}</h1><p>$50</p>"

    def session(number: int) -> Session:
        first = random.choice("aaaabcdefg")
        heading = random.choice(["Tin kettles", "Red kettles", "Pots"])
        back = f"menu.{'_'.join(heading.lower().split())}"
        clicks = (f"results.{first}.view", back, f"results.{names[names.index(first) + 1]}.view")
        pages = (cards, product(heading), cards)
        steps = (Step(page=page, action=Click(name=name)) for page, name in zip(pages, clicks, strict=True))
        return planted_session(number, tuple(steps))

    fitted = fit_to(tmp_path / "store", map(session, range(300)))
    shares = shares_on(fitted, cards)
    assert shares[Click(name="results.a.view")] > 2 * shares[Click(name="results.f.view")]
    shares = shares_on(fitted, product("Pots"))
    assert max(shares, key=lambda action: shares[action]) == Click(name="menu.pots")
    seen = [Step(page=cards, action=Click(name=f"results.{name}.view")) for name in "eh"]
    *_, after = observe_session(planted_session(0, tuple(seen)), GOAL_SHOWN)
    [(actions, likely)] = fitted.distributions([after])
    assert actions[likely.argmax()] == Click(name="results.f.view")


def test_refits_differ_as_much_as_the_planted_weights_are_uncertain(model, planted):
    """Their log-ratios are the differences of log-probabilities; more users make them smaller."""
    spreads = []
    for users in (150, 600):
        refitted = ChoiceModel(
            TrainView(SessionStore.open(planted), GOAL_SHOWN), first_action=True, max_steps=users, refits=12
        )
        pages = [next(iter(observe_session(session, GOAL_SHOWN))) for session in planted_sessions(40)]
        replies = refitted.act_batch(pages, seeds=range(40))
        ratios = refitted.log_ratios(pages, replies)
        assert ratios.shape == (40, 12)
        spreads.append(float(ratios.std(axis=1).mean()))
        by_fit = refitted.distributions(pages)
        refitted.weights = refitted.refitted[3]
        for n, (reply, (actions, own), (_, other)) in enumerate(
            zip(replies, by_fit, refitted.distributions(pages), strict=True)
        ):
            index = actions.index(parse_reply(reply).action)
            assert ratios[n, 3] == pytest.approx(np.log(other[index] / own[index]))
    assert 1.3 < spreads[0] / spreads[1] < 3


def test_refits_reach_their_optimum(planted, model, monkeypatch):
    """One that stops halfway would differ too little from the fit, and intervals be too narrow."""
    few, many = [], []
    for iterations, distances in ((choice_model.REFIT_ITERATIONS, few), (1000, many)):
        monkeypatch.setattr(choice_model, "REFIT_ITERATIONS", iterations)
        fitted = ChoiceModel(TrainView(SessionStore.open(planted), GOAL_SHOWN), first_action=True, refits=2)
        distances += [np.linalg.norm(weights - fitted.weights) for weights in fitted.refitted]
    assert few == pytest.approx(many, rel=0.1)


def test_choices_that_are_left_out_of_the_fit_are_stood_for(model, monkeypatch):
    monkeypatch.setattr(choice_model, "MAX_OTHERS", 10)
    links = "".join(f'<a name="menu.n{number}">{number}</a>' for number in range(40))
    [page] = model.pages([observation(card("a", 20, 4.0) + links)])
    chosen = next(index for index, choice in enumerate(page.choices) if choice.action == Click(name="menu.n7"))
    few, taken, counts = sample_page(page, chosen, np.random.default_rng(0))
    assert few.choices[taken] == page.choices[chosen] and len(few.choices) == 10 + 2  # terminate and the offer
    assert counts.sum() == pytest.approx(len(page.choices))


def test_the_features_are_as_many_as_their_names(model):
    [page] = model.pages([observation(card("a", 20, 4.0))])
    assert {len(choice.facts) for choice in page.choices} == {len(FEATURES)}


def test_a_very_long_visit_is_not_weighed_in_proportion_to_its_length(model):
    """Three visits of over 100 steps had a quarter of the merchandise store's test steps: terminate seemed certain."""
    step = Step(page=card("a", 20, 4.0), action=Click(name="results.a.view"))
    after = [*observe_session(planted_session(0, (step,) * 201), GOAL_SHOWN)]
    few, many = (
        page.choices[0].facts[FEATURES.index("steps so far, log")] for page in model.pages([after[20], after[200]])
    )
    assert 0 < few < many < few + np.log(10)


def test_without_a_budget_the_level_of_a_page_s_prices_is_learnt(tmp_path):
    """Shoppers leave a dear page; what is relative to the page's own prices could not tell."""
    random = Random(0)

    def page(price: float) -> str:
        return "".join(card(name, price, 4.0) for name in "abc")

    def session(number: int) -> Session:
        price = random.choice([20.0, 80.0])
        is_clicked = random.random() < (0.9 if price == 20 else 0.1)
        action = Click(name=f"results.{random.choice('abc')}.view") if is_clicked else Terminate()
        return planted_session(number, (Step(page=page(price), action=action),), goal=None)

    fitted = fit_to(tmp_path / "store", map(session, range(300)))
    cheap, dear = (shares_on(fitted, page(price), goal="")[Terminate()] for price in (20, 80))
    assert cheap < 0.2 and dear > 0.8
