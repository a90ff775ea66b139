"""A baseline: will they buy? A logistic regression of A's logs on what the shop shows for the need.

It knows of each need what the first page of a search for it shows: how dear that is beside the budget, stars, badges,
stock, and what shipping adds. Of the shop with a change it is shown the same, and the difference of its probabilities
is the effect that it predicts. What never varies in A's logs, such as one more page at checkout, it cannot know.
"""

from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.ab.walks import PAGE_SIZE, Floats
from replay_sessions.demo_shop import ShopVariant, ShopVisit
from replay_sessions.demo_shop.realistic import CONTROL, RealisticShop
from replay_sessions.demo_shop.realistic.read import view_of
from replay_sessions.demo_shop.realistic.shop import SEARCH_INPUT
from replay_sessions.demo_shop.realistic.shopper import need_of
from replay_sessions.schema import Persona, Session, TypeAndSubmit

BUYING = ("product.buy_now", "cart.checkout", "checkout.place_order")


class PurchaseModel:
    """Fitted on sessions of A."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        features = np.array([_features(session.goal, session.persona, CONTROL) for session in sessions])
        bought = np.array([getattr(session.steps[-1].action, "name", "") in BUYING for session in sessions])
        self._model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(features, bought)

    def probabilities(self, visits: int, population: int, variant: ShopVariant) -> Floats:
        """That each visit of a population buys, (visits,)."""
        features = []
        for number in range(visits):
            visit = ShopVisit(population, number, PAGE_SIZE)
            features.append(_features(visit.goal, visit.persona, variant))
        probabilities: Floats = self._model.predict_proba(np.array(features))[:, 1]
        return probabilities


def _features(goal: str | None, persona: Persona | None, variant: ShopVariant) -> list[float]:
    need, traits = need_of(goal or ""), persona.traits if persona else {}
    shop = RealisticShop(variant)
    shop.respond(TypeAndSubmit(name=SEARCH_INPUT, text=" ".join((*need.wanted, need.nouns[0]))))
    offers = view_of({"page": shop.page, "history": ()}).offers
    budget = need.budget_cents / len(need.nouns)
    prices = sorted(offer.price_cents / budget for offer in offers)
    ratings = [offer.rating for offer in offers if offer.rating is not None]
    thrifty, careful = traits.get("price") == "thrifty", traits.get("quality") == "careful"
    generous, hasty = traits.get("price") == "generous", traits.get("patience") == "hasty"
    best = max(ratings, default=0.0)
    return [
        prices[0],
        prices[len(prices) // 2],
        prices[0] * thrifty,
        prices[0] * generous,
        best,
        best * careful,
        float(np.mean([offer.badge for offer in offers])),
        float(np.mean([offer.in_stock for offer in offers])),
        variant.shipping_cents / need.budget_cents,
        float(len(need.nouns)),
        float(bool(need.wanted)),
        thrifty,
        generous,
        careful,
        hasty,
    ]
