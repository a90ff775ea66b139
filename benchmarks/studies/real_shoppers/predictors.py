"""Models of a shop that are trained on sessions, whosever they are, and tested on people's.

    leaving     will the visit end on this page?        logistic regression over what was done so far, and the page
    purchase    will it end in a purchase?              the same
    product     which product is looked at next?        an n-gram model over the products so far (Witten-Bell)

Leaving and purchase are judged on pages of kinds on which people's visits end, from the second step on.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from agents.baselines.fitted import WittenBell
from benchmarks.studies.real_shoppers.logged_shop import is_purchase, page_kind
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Click, Session, Terminate
from shop_env.metrics.statistics import Floats

Task = Literal["leaving", "purchase", "product"]
VIEW = ".view_product"
LAST_PRODUCTS = 2
Kinds = frozenset[frozenset[str]]


class Example(NamedTuple):
    """Something to predict.

    Attributes:
        facts: What is known: of `product` those looked at last, else words and numbers.
        outcome: What came: 0 or 1, of `product` its name.
    """

    facts: Any
    outcome: Any
    user: str


class Score(NamedTuple):
    """A figure, and what each example adds to its deviation, (examples,)."""

    value: float
    influences: Floats


def kinds_of_ends(sessions: Sequence[Session]) -> Kinds:
    """The kinds of pages on which sessions end."""
    return frozenset(page_kind(session.steps[-1].page) for session in sessions)


def viewed(action: Action) -> str:
    """The product that a click opens; "" for other actions."""
    is_view = isinstance(action, Click) and action.name.endswith(VIEW)
    return action.name.removesuffix(VIEW).rpartition(".")[2] if is_view else ""  # type: ignore[union-attr]


def examples(sessions: Sequence[Session], task: Task, kinds: Kinds) -> list[Example]:
    """The examples of sessions."""
    read = _products if task == "product" else _ends
    return [example for session in sessions for example in read(session, task, kinds)]


def _products(session: Session, task: Task, kinds: Kinds) -> Iterator[Example]:
    names = [name for step in session.steps if (name := viewed(step.action))]
    for index in range(1, len(names)):
        yield Example(tuple(names[max(0, index - LAST_PRODUCTS) : index]), names[index], session.user_id)


def _ends(session: Session, task: Task, kinds: Kinds) -> Iterator[Example]:
    end = session.steps[-1].action
    names = [getattr(step.action, "name", "") for step in session.steps]
    products = [viewed(step.action) for step in session.steps]
    for index, step in enumerate(session.steps[1:], start=1):
        if (kind := page_kind(step.page)) in kinds:
            is_end = index == len(names) - 1 and (isinstance(end, Terminate) or is_purchase(end))
            facts = {
                "page " + " ".join(sorted(kind)): 1,
                f"last {names[index - 1]}": 1,
                **{f"did {name.rpartition('.')[2]}": 1 for name in names[:index] if not name.endswith(VIEW)},
                "steps": math.log(index),
                "products": math.log1p(len({*products[:index]} - {""})),
            }
            yield Example(facts, int(is_end if task == "leaving" else is_purchase(end)), session.user_id)


def score(task: Task, train: Sequence[Example], test: Sequence[Example], products: Sequence[str]) -> dict[str, Score]:
    """Trains a model and judges it: AUC or accuracy, and log loss in nats.

    Args:
        products: All that there are.
    """
    if task == "product":
        return _score_products(train, test, products)
    labels = np.array([example.outcome for example in test])
    if len(set(labels)) < 2:
        raise BadConfig(f"Task {task}: all {len(labels)} test examples have the same outcome; leave it out of --tasks.")
    trained = [example.outcome for example in train]
    if len(set(trained)) == 1:  # nothing to learn from: everybody has the same chance
        held = np.full(len(test), (1 + sum(trained)) / (2 + len(trained)))
    else:
        model = make_pipeline(DictVectorizer(), LogisticRegression(max_iter=500))
        model.fit([example.facts for example in train], trained)
        held = model.predict_proba([example.facts for example in test])[:, 1]
    return {"AUC": area(held, labels), "log loss": _mean(-np.log(np.where(labels == 1, held, 1 - held)))}


def area(held: Floats, labels: Floats) -> Score:
    """The area under the ROC curve; influences by E. DeLong, D. DeLong and D. Clarke-Pearson (1988)."""
    value, influences = float(roc_auc_score(labels, held)), np.zeros(len(held))
    for own in (0, 1):
        others = np.sort(held[labels != own])
        below = (np.searchsorted(others, held[labels == own], "left")
                 + np.searchsorted(others, held[labels == own], "right")) / 2 / len(others)  # fmt: skip
        influences[labels == own] = ((below if own else 1 - below) - value) / len(below)
    return Score(value, influences)


def _mean(values: Floats) -> Score:
    return Score(float(values.mean()), (values - values.mean()) / len(values))


def _score_products(train: Sequence[Example], test: Sequence[Example], products: Sequence[str]) -> dict[str, Score]:
    model, numbers = WittenBell(), {name: number for number, name in enumerate(products)}
    for example in train:
        model.add(example.facts, example.outcome)
    held = {facts: model.among(facts, products) for facts in {example.facts for example in test}}
    own = np.array([held[example.facts][numbers[example.outcome]] for example in test])
    best = np.array([held[example.facts].argmax() == numbers[example.outcome] for example in test])
    return {"accuracy": _mean(best.astype(np.float64)), "log loss": _mean(-np.log(own))}
