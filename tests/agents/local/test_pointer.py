"""`pointer` learns relations to earlier clicks that counts of names cannot."""

from random import Random

import numpy as np
import pytest

from agents.local.pointer import PointerAgent
from agents.registry import make_agent
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.store import SessionStore
from replay_sessions.store.splits import SplitPlan
from shop_env.evaluation.evaluate import evaluate
from shop_env.metrics import step_metrics
from shop_env.replies import parse_reply
from tests.scored_steps import scored_steps
from tests.stores import store_at
from train.pointer import fit


def sessions_of_the_next_item(split: str, count: int) -> list[Session]:
    """Shoppers who go on to the next item of a list that is shuffled for each of them, four times out of five."""
    random, sessions = Random(split), []
    for number in range(count):
        items = [f"results.p{item}.view_product" for item in random.sample(range(40), 8)]
        place, steps = random.randrange(3), []
        page = '<h1>List</h1><input name="search"/>' + "".join(f'<a name="{name}">{name}</a>' for name in items)
        for _ in range(6):
            steps.append(Step(page=page, action=Click(name=items[place])))
            place = (place + 1) % 8 if random.random() < 0.8 else random.randrange(8)
        last: Action = TypeAndSubmit(name="search", text="red hat") if number % 2 else Terminate()
        steps.append(Step(page=page, action=last))
        sessions.append(
            Session(
                session_id=f"{split} {number}",
                user_id=f"{split} {number}",
                source="planted",
                official_split=split,
                steps=tuple(steps),
            )
        )
    return sessions


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SessionStore:
    sessions = [*sessions_of_the_next_item("train", 80), *sessions_of_the_next_item("test", 40)]
    return store_at(tmp_path_factory.mktemp("next") / "store", sessions, splits=SplitPlan(by="official"))


@pytest.fixture(scope="module")
def agent(store) -> PointerAgent:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "UPDATES", 200)  # enough for this rule
        agent = make_agent("pointer", store=store)
    assert isinstance(agent, PointerAgent)
    return agent


def test_the_next_item_of_a_list_is_learnt_where_counts_of_names_cannot(store, agent):
    exact, counted = (
        step_metrics(evaluate(each, store, "test"))["exact_accuracy"]
        for each in (agent, make_agent("page_counts", store=store))
    )
    assert exact > counted + 0.3
    assert exact > 0.5


def test_every_choice_has_a_probability_and_they_sum_to_1(store, agent):
    observations = [step.observation for step in scored_steps(store, "test", sessions=5)]
    strange = {**observations[-1], "page": '<a name="new.thing">New</a><textarea name="note"></textarea>'}
    for probabilities in agent.probabilities([*observations, strange]) or []:
        assert sum(probabilities.values()) == pytest.approx(1)
        assert min(probabilities.values()) > 0
    replies = agent.act_batch(observations, seeds=[None] * len(observations))
    for reply, probabilities in zip(replies, agent.probabilities(observations) or [], strict=True):
        assert probabilities[parse_reply(reply).action] == max(probabilities.values())


def test_probabilities_of_a_step_do_not_depend_on_the_other_steps_of_a_call(store, agent):
    observations = [step.observation for step in scored_steps(store, "test", sessions=3)]
    for together, observation in zip(agent.distributions(observations), observations, strict=True):
        ((_, alone),) = agent.distributions([observation])
        assert together[1] == pytest.approx(alone, rel=1e-4)


def test_the_same_seed_gives_the_same_fit_and_another_seed_another(store, monkeypatch):
    monkeypatch.setattr(fit, "MIN_EPOCHS", 2)
    monkeypatch.setattr(fit, "UPDATES", 10)
    observations = [step.observation for step in scored_steps(store, "test", sessions=2)]
    first, same, other = (
        [shares for _, shares in PointerAgent(str(store.path), seed=seed).distributions(observations)]
        for seed in (0, 0, 1)
    )
    assert all(map(np.array_equal, first, same))
    assert not any(map(np.array_equal, first, other))


def test_steps_below_1_are_refused(store):
    with pytest.raises(BadConfig, match="max_steps"):
        make_agent("pointer?max_steps=0", store=store)


def test_a_store_of_actions_outside_the_candidates_can_be_fitted(tmp_path):
    steps = tuple(Step(page="<p>Nothing to click</p>", action=Click(name="gone")) for _ in range(3))
    session = Session(session_id="s", user_id="u", source="planted", official_split="train", steps=steps)
    store = store_at(tmp_path / "store", [session], splits=SplitPlan(by="official"))
    ((actions, shares),) = PointerAgent(str(store.path)).distributions([
        {"page": "", "history": (), "persona": "", "goal": "", "step": 0}
    ])  # fmt: skip
    assert actions == [Terminate()] and shares == pytest.approx([1.0])
